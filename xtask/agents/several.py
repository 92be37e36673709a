"""Two agents at once, in one folder."""

import common
from check import check
from claude import Claude
from codex import Codex


@check
def claude_code_and_codex_in_one_folder_get_their_own_results():
    with Claude() as claude:
        codex = Codex(beside=claude)
        common.interleaved([claude, codex])
