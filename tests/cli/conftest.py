"""The environment file of the pipeline, as `waypost dev` would write it."""

from pathlib import Path

import pytest

from tests.support.builders import ACCOUNT, ANN, APP
from tests.support.pipeline import ADMIN_TOKEN, API_KEY, PipelineHarness


@pytest.fixture
async def variables(pipeline: PipelineHarness) -> dict[str, str]:
    """Return the variables that `waypost dev` would write for the pipeline."""
    return {
        "PARTNER_URL": pipeline.service_url,
        "API_URL": pipeline.service_url,
        "ADMIN_URL": f"{pipeline.service_url}/admin",
        "ADMIN_TOKEN": ADMIN_TOKEN,
        "CONTROL_URL": f"{pipeline.operator_url}/control",
        "API_KEY": API_KEY,
        "APP_ID": APP.id,
        "APP_TOKEN": pipeline.app_token,
        "SOURCE": APP.phone_number,
        "SRC_NAME": APP.name,
        "WABA_ID": ACCOUNT.id,
        "PHONE_NUMBER_ID": APP.phone_number_id,
        "DESTINATION": ANN,
        "TEMPLATE_ID": await pipeline.approved_template(),
    }


@pytest.fixture
def env_file(variables: dict[str, str], tmp_path: Path) -> Path:
    file = tmp_path / "of-the-pipeline.env"
    file.write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
    return file
