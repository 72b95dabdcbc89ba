"""Train on one GPU of a pool. Each checkpoint is written under the token of the lease.

    leasehold define gpu/pool --units 0,1,2,3
    PYTHONPATH=clients/python/src python3 clients/python/examples/train.py
"""

import os
import time
import urllib.error
import urllib.request

import leasehold

SERVER = os.environ.get("LEASEHOLD_SERVER", "http://127.0.0.1:4653").split(",")[0]


def say_place(w: leasehold.Waiting) -> None:
    print(f"waiting: place {w.position} of {w.waiting}")


def save(epoch: int, token: int) -> None:
    """Write a checkpoint to a record, which refuses everybody whose token is smaller than one it has seen."""
    urllib.request.urlopen(urllib.request.Request(
        SERVER + "/v1/records/model/checkpoint", data=f"epoch {epoch}".encode(), method="PUT",
        headers={"Leasehold-Token": str(token)})).close()


def main() -> None:
    with leasehold.hold("gpu/pool", units=1, wait=3600, reason="example", on_wait=say_place) as h:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(h.units)
        for epoch in range(1, 4):
            time.sleep(0.1)  # the work
            h.note(f"epoch {epoch} of 3")
            save(epoch, h.token)  # h.token raises LostError if the lease is lost
        print("trained on GPU", *h.units)


if __name__ == "__main__":
    main()
