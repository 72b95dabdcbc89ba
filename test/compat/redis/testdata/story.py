"""Tells the story of a lease by redis-py. Where the server is, the environment says."""

import os
import threading

import redis

arguments = {"host": os.environ["HOST"], "port": int(os.environ["PORT"]), "decode_responses": True}
if os.environ.get("TOKEN"):
    arguments |= {"username": "default", "password": os.environ["TOKEN"]}
if os.environ.get("CA"):
    arguments |= {"ssl": True, "ssl_ca_certs": os.environ["CA"]}


def connect():
    return redis.Redis(**arguments)


def fields(answer):
    """RESP2 has no maps: they are lists of keys and values."""
    return answer if isinstance(answer, dict) else dict(zip(answer[::2], answer[1::2]))


def acquire(client, *words):
    return fields(client.execute_command("LH.ACQUIRE", *words))


ours, others = connect(), connect()
assert ours.ping()
lease = acquire(ours, "py/r", "HOLDER", "ann", "TTL", "30s", "ID", "py1", "LABEL", "team=a")
assert lease["id"] == "py1" and int(lease["token"]) > 0, lease
try:
    acquire(others, "py/r", "HOLDER", "bob")
    raise SystemExit("a held lease was granted")
except redis.ResponseError as error:
    assert str(error).startswith("HELD py/r is held by ann"), error
try:
    ours.execute_command("LH.ACQUIRE", "py/r", "COLOUR", "red")
    raise SystemExit("an unknown keyword was taken")
except redis.ResponseError as error:
    assert "COLOUR" in str(error), error
assert fields(ours.execute_command("LH.RENEW", "py1"))["token"] == lease["token"]

granted = []
waiter = threading.Thread(
    target=lambda: granted.append(acquire(others, "py/r", "HOLDER", "bob", "WAIT", "60s", "ID", "py2"))
)
waiter.start()
while int(fields(ours.execute_command("LH.GET", "py/r")).get("waiting", 0)) == 0:
    pass
assert not granted, granted
assert ours.execute_command("LH.RELEASE", "py1") == "OK"
waiter.join()
assert int(granted[0]["token"]) > int(lease["token"]), granted

many = ours.pipeline(transaction=False)
for i in range(20):
    many.execute_command("LH.ACQUIRE", f"py/many/{i}", "HOLDER", "ann", "ID", f"pm{i}")
many.execute_command("LH.RENEW", "nobody")
*leases, error = many.execute(raise_on_error=False)
tokens = [int(fields(lease)["token"]) for lease in leases]
assert tokens == sorted(set(tokens)), tokens
assert isinstance(error, redis.ResponseError), error

# With RESP2 the connection is for the watch alone.
watch = connect().connection_pool.get_connection("LH.WATCH")
watch.send_command("LH.WATCH", "PREFIX", "py/", "TAG", "t")
assert fields(watch.read_response())["tag"] == "t"
others.execute_command("LH.RELEASE", "py2")
kind, tag, event = watch.read_response()
assert (kind, tag, fields(event)["id"]) == ("lh.watch", "t", "py2"), (kind, tag, event)
watch.disconnect()
print("told")
