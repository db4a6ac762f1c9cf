"""The JavaScript client: draw for draw the Python samplers, the same tasks and seals; a browser."""

import fcntl
import json
import math
import shutil
import subprocess
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service.running import ANSWERS, Setting, sealed, survey

import shuffledp as sdp
from shuffledp.service.batches import analyze_batch
from shuffledp.service.documents import sampler_of
from shuffledp.service.sealing import open_inner
from shuffledp.shuffling._batches import bytes_per_report
from shuffledp.shuffling.report_files import open_reports

ROOT = Path(__file__).resolve().parent.parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example page with its packages installed, once for all processes of the tests."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"the JavaScript client needs {program}")
    top = tmp_path_factory.getbasetemp()
    shared = (top.parent if top.name.startswith("popen-") else top) / "javascript"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = shared / "examples" / "web-survey"
        if not (made / "node_modules" / "@hpke" / "core").exists():
            ignore = shutil.ignore_patterns("node_modules")
            for part in ("clients/js", "examples/web-survey"):
                shutil.copytree(ROOT / part, shared / part, ignore=ignore, dirs_exist_ok=True)
            install = ["npm", "install", "--install-links", "--no-package-lock", "--no-audit", "--no-fund"]
            done = subprocess.run(install, cwd=made, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip("npm could not install the packages of the client")
    return made


def node(page: Path, job: str, **given: Any) -> Any:
    """What the JavaScript client answers."""
    client = page / "node_modules" / "shuffledp-client" / "src" / "index.js"
    command = ["node", str(Path(__file__).parent / "drive.mjs"), str(client)]
    text = json.dumps({"job": job, **given})
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def task_of(protocol: Any) -> dict[str, Any]:
    """The fields of a task that a sampler needs."""
    size = bytes_per_report(protocol.report_dtype, protocol.report_shape)
    return {"plan": protocol.to_dict(), "sampler": sampler_of(protocol), "report_bytes": size}


def asked(randomizer: Any, k: int) -> sdp.HistogramProtocol:
    return sdp.HistogramProtocol([f"v{i}" for i in range(k)], 2.0, 1e-3, 50, randomizer=randomizer)


@cache
def all_protocols() -> dict[str, Any]:
    """One of each kind that JavaScript knows."""
    return {
        "k-ary": survey(),
        "binary": asked(sdp.BinaryRandomizedResponse(epsilon0=1.5), 2),
        "k-ary of 300": asked(sdp.KaryRandomizedResponse(300, epsilon0=1.5), 300),
        "OUE": asked(sdp.OptimisedUnaryEncoding(11, epsilon0=1.5), 11),
        "RAPPOR": asked(sdp.SymmetricUnaryEncoding(8, epsilon0=1.5), 8),
        "mean": sdp.MeanProtocol(-3.0, 17.3, 2.0, 1e-3, 50),
        "clipped": sdp.SumProtocol(0.0, 0.7, 2.0, 1e-3, 50, outside="clip", levels=5),
        "Laplace": sdp.SumProtocol(-1.0, 2.0, 2.0, 1e-3, 50, randomizer=sdp.DiscreteLaplace(1.0, -1.0, 2.0)),
        "Gaussian": sdp.MeanProtocol(
            0.0, 1.0, 2.0, 1e-2, 50, randomizer=sdp.DiscreteGaussian(1.0, 0.0, 1.0, levels=6)
        ),
    }


def test_the_same_words_give_the_same_reports_in_both_languages(page: Path) -> None:
    protocols = all_protocols()
    made = {kind: cases_of(protocol) for kind, protocol in protocols.items()}
    jobs = [[task_of(protocol), made[kind][0]] for kind, protocol in protocols.items()]
    answered = node(page, "randomize", jobs=jobs)
    for (kind, (_, expected)), reports in zip(made.items(), answered, strict=True):
        assert [report for report, _ in reports] == expected, kind


def cases_of(protocol: Any) -> tuple[list[tuple[Any, str]], list[str]]:
    """(values with words, the reports that Python makes of them)."""
    rng, cases, expected = np.random.default_rng(7), [], []
    for case in range(60):
        if protocol.name == "histogram":
            value = protocol.categories[int(rng.integers(len(protocol.categories)))]
        else:
            value = float(rng.uniform(protocol.low, protocol.high))
            value = [protocol.low, protocol.high, value][min(case, 2)]
            value += 9.0 * (protocol.outside == "clip" and case % 5 == 0)
        words = np.random.default_rng(case).integers(0, 2**64 - 1, size=320, dtype=np.uint64, endpoint=True)
        cases.append((value, words.astype("<u8").tobytes().hex()))
        report = protocol.randomize(value, rng=np.random.default_rng(case))
        expected.append(np.asarray(report, dtype=protocol.report_dtype.newbyteorder("<")).tobytes().hex())
    return cases, expected


def test_words_beyond_the_weights_are_drawn_again(page: Path) -> None:
    third = str(2**64 // 3)
    task = task_of(survey()) | {"sampler": {"kind": "response", "k": 3, "weights": [third, third]}}
    (((_, drawn),),) = node(page, "randomize", jobs=[[task, [["no", "ff" * 8 + "00" * 8]]]])
    assert drawn == 2


def test_fresh_words_have_the_exact_probabilities(page: Path) -> None:
    protocol, draws = survey(), 20_000
    a, b = map(int, sampler_of(protocol)["weights"])
    answered = node(page, "fresh", task=task_of(protocol), value="yes", count=draws)
    seen = Counter(int(report, 16) for report in answered)
    expected = {place: draws * (a if place == 1 else b) / 2**64 for place in range(3)}
    chi = sum((seen[place] - mean) ** 2 / mean for place, mean in expected.items())
    assert chi < 27.6  # two degrees of freedom: exceeded once in a million
    assert sum(seen.values()) == draws


def test_both_languages_agree_what_one_report_costs(page: Path) -> None:
    protocols = list(all_protocols().values())
    costs = node(page, "epsilon", samplers=[sampler_of(protocol) for protocol in protocols])
    for protocol, cost in zip(protocols, costs, strict=True):
        assert math.isclose(cost, protocol.randomizer.facts().epsilon0.upper, rel_tol=1e-9)


def test_values_outside_of_the_domain_are_refused(page: Path) -> None:
    histogram, mean = task_of(survey()), task_of(all_protocols()["mean"])
    other = task_of(sdp.HistogramProtocol(["a", "b"], 2.0, 1e-3, 50, other="else"))
    tasks = [(histogram, "maybe"), (histogram, 1), (mean, 99.0), (mean, None), (mean, "3"), (other, "c")]
    answered = node(page, "refused", tasks=tasks)
    assert answered[:5] == ["RangeError"] * 5
    assert len(answered[5]) == 2


def test_node_submits_to_a_running_shuffler_and_refuses_what_it_must(page: Path, each: Setting) -> None:
    task = each.create()
    running = each.start("--no-release")
    address, signer = f"{running.address}/tasks/pets", each.key.signer.hex()
    checks: dict[str, Any] = {
        "signer": signer,
        "maxEpsilon0": 3.0,
        "fingerprint": sdp.short_fingerprint(survey()),
    }
    done = node(page, "submit", address=address, checks=checks, values=["yes", "no", "perhaps"] * 4)
    assert done["told"] == [1] * 12
    assert "differentially private" in " ".join(done["words"])
    with each.shuffler() as shuffler:
        assert shuffler.pending("pets") == 12
        with shuffler.store.transaction("BEGIN") as t:
            _, seals = t.reports(shuffler.collection("pets").key, 12, len(sealed(each, task, ["no"])[0]) - 73)
    opened = [open_inner(seal.tobytes(), task.id, each.key.opens) for seal in seals]
    assert {len(report) for report in opened} == {1}
    assert {report[0] for report in opened} <= {0, 1, 2}
    wrong: dict[str, dict[str, Any]] = {
        "not signed by": {"signer": "ab" * 32},
        "64 hexadecimal": {"signer": "short"},
        "maxEpsilon0": {"maxEpsilon0": 1.0},
        "fingerprint": {"fingerprint": survey(301).fingerprint},
    }
    refused = node(page, "plans", address=address, checks=[checks, *(checks | one for one in wrong.values())])
    assert refused[0] == ""
    for message, error in zip(wrong, refused[1:], strict=True):
        assert error.startswith("PlanError: ")
        assert message in error


def test_a_person_answers_in_a_browser_and_the_batch_is_right(
    page: Path, each: Setting, tmp_path: Path
) -> None:
    """Chromium opens the example page, answers and submits; scripted clients make the crowd."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    folder = tmp_path / "page"
    shutil.copytree(page, folder)
    task = each.create()
    config = (folder / "config.js").read_text().replace("0" * 64, each.key.signer.hex())
    (folder / "config.js").write_text(config)
    running = each.start("--page", str(folder))
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        phone = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
        tab = phone.new_page()
        tab.set_default_timeout(120_000)  # of a busy machine
        for address in (running.address, f"{running.address}/survey/"):
            tab.goto(address)
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390, "nothing is cut on a phone"
        tab.get_by_label("perhaps").check(timeout=60_000)
        assert tab.inner_text("legend") == "Do you have a pet?"
        assert "your true answer is sent" in tab.inner_text("#means")
        assert "at most 2.72 times as likely with your answer as with any other" in tab.inner_text("#means")
        assert tab.inner_text("#fingerprint") == sdp.short_fingerprint(survey())
        tab.click("#send")
        tab.wait_for_function(
            "document.getElementById('state').textContent.startsWith('Thank')", timeout=60_000
        )
        tab.reload()
        tab.wait_for_function(
            "document.getElementById('state').textContent.startsWith('You have')", timeout=60_000
        )
        (folder / "config.js").write_text(config.replace(each.key.signer.hex(), "ab" * 32))
        other = browser.new_page()
        other.set_default_timeout(120_000)
        other.goto(f"{running.address}/survey/")
        other.wait_for_function(
            "document.getElementById('state').textContent.includes('trusted')", timeout=60_000
        )
        browser.close()
    values = ["no"] * 150 + ["yes"] * 100 + ["perhaps"] * 49
    assert set(running.post_all(sealed(each, task, values))) == {202}
    end = time.monotonic() + 60.0
    while not each.batches():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert running.stop() == 0
    (batch,) = each.batches()
    assert open_reports(batch).n == 300
    result = analyze_batch(batch, each.key)
    low, high = result.interval(confidence=1 - 1e-9)
    for truth, a, b in zip((150, 100, 50), low, high, strict=True):
        assert a <= truth <= b
    kept = b"".join(path.read_bytes() for path in each.data.rglob("*") if path.is_file())
    text = (kept + each.stored + each.logs).replace(json.dumps(task.signed.text).encode()[1:-1], b"")
    text = text.replace(f'"address": "{running.address}"'.encode(), b"")
    for word in (*ANSWERS[2:], "127.0.0.1", "[::1]", "Mozilla", "Chrome"):
        assert word.encode() not in text, word
