"""A shuffler that runs: sealed reports come in one by one, mixed batches go out.

    client     randomizes, seals twice, submits            shuffledp.client, clients/js
    shuffler   opens the outer seal, waits, mixes, forgets shuffledp.service.shuffler, .server
    analyst    opens the inner seal, counts                shuffledp.service.batches

What all of them agree on is a signed document, the *task* (``documents``). Needs the extra ``service``.
"""
