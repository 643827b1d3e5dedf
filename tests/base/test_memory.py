"""How much memory there is, as the control groups of containers tell it."""

from mmes.base import memory


def group(folder, limit, current, active=0, inactive=0):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{current}\n")
    (folder / "memory.stat").write_text(
        f"anon 5\nfile 7\nactive_file {active}\ninactive_file {inactive}\n"
    )


def headroom(tmp_path, own="0::/\n"):
    (tmp_path / "own").write_text(own)
    return memory.cgroup_headroom(tmp_path / "root", tmp_path / "own")


def test_files_kept_in_memory_are_not_used_memory(tmp_path):
    group(tmp_path / "root", 1000, 900, active=100, inactive=600)
    assert headroom(tmp_path) == 800


def test_the_tightest_group_above_a_process_counts(tmp_path):
    group(tmp_path / "root", "max", 10_000)
    group(tmp_path / "root/slice", 1000, 400)
    group(tmp_path / "root/slice/job", 5000, 100)
    assert headroom(tmp_path, "0::/slice/job\n") == 600
    assert headroom(tmp_path) is None


def test_version_1_of_control_groups_is_read_too(tmp_path):
    folder = tmp_path / "root/memory"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("1000\n")
    (folder / "memory.usage_in_bytes").write_text("800\n")
    (folder / "memory.stat").write_text("total_active_file 50\ntotal_inactive_file 250\n")
    assert headroom(tmp_path, "5:memory:/x\n") == 500


def test_without_groups_there_is_no_limit(tmp_path):
    assert headroom(tmp_path) is None
