// Waypost in a container for tests in Node, by a generic container of Testcontainers.

import { attachWaypost } from "@waypost/dev";
import { GenericContainer, Wait } from "testcontainers";

/** Start the container; return it, and the running Waypost. */
export async function startWaypostContainer() {
  const container = await new GenericContainer("registry.example.com/waypost")
    .withCommand(["dev", "--memory"])
    .withEnvironment({ WAYPOST_RATES: "false" })
    .withExposedPorts(8080, 8081)
    .withWaitStrategy(Wait.forHttp("/readyz", 8080).forStatusCode(200))
    .start();
  const url = (port) => `http://${container.getHost()}:${container.getMappedPort(port)}`;
  return { container, waypost: await attachWaypost({ apiUrl: url(8080), graphUrl: url(8081) }) };
}
