"""Every method and codec on the GPU, over the local transport: ranks are threads."""

import pytest
import test_collectives
import test_collectives_agree
import test_collectives_errors
from world import cases_of

pytestmark = pytest.mark.gpu

# The functions themselves, under their own names: their `device` is this folder's.
for module in (test_collectives, test_collectives_agree, test_collectives_errors):
    globals().update(cases_of(module))
