"""Every codec on the GPU: its payloads are the reference's, and so the host's (V14)."""

import pytest
import test_codecs
import test_codecs_layout
import test_codecs_values
from world import cases_of

pytestmark = pytest.mark.gpu

# The functions themselves, under their own names: their `device` is this folder's.
for module in (test_codecs, test_codecs_layout, test_codecs_values):
    globals().update(cases_of(module))
