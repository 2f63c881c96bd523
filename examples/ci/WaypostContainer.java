import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/** Waypost in a container for tests in Java, by a generic container of Testcontainers. */
public class WaypostContainer extends GenericContainer<WaypostContainer> {
  private static final int API_PORT = 8080;
  private static final int SIMULATOR_PORT = 8081;
  private final HttpClient http = HttpClient.newHttpClient();

  public WaypostContainer() {
    super(DockerImageName.parse("registry.example.com/waypost"));
    withCommand("dev", "--memory");
    withEnv("WAYPOST_RATES", "false");
    withExposedPorts(API_PORT, SIMULATOR_PORT);
    waitingFor(Wait.forHttp("/readyz").forPort(API_PORT).forStatusCode(200));
  }

  /** Creates a partner for one test; returns the JSON with its `id` and with `env`, the application's variables. */
  public String createPartner(String testName) throws IOException, InterruptedException {
    String body = "{\"name\": \"%s\", \"api_url\": \"%s\", \"graph_url\": \"%s\"}"
        .formatted(testName, url(API_PORT), url(SIMULATOR_PORT));
    return control("/partners", body);
  }

  /** Waits for a message on a partner's phone; a failure has the explanation of the server. */
  public String waitForMessage(String partnerId, String phone) throws IOException, InterruptedException {
    return control("/partners/" + partnerId + "/wait-for-message", "{\"phone\": \"" + phone + "\"}");
  }

  private String control(String path, String body) throws IOException, InterruptedException {
    HttpRequest request = HttpRequest.newBuilder(URI.create(url(SIMULATOR_PORT) + "/control" + path))
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(body))
        .build();
    HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
    if (response.statusCode() >= 300) {
      throw new AssertionError(response.body());
    }
    return response.body();
  }

  private String url(int port) {
    return "http://" + getHost() + ":" + getMappedPort(port);
  }
}
