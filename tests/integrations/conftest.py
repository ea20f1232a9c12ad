"""LiteLLM asks the network for prices when it is imported, unless it is told to use those that it brings along."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
