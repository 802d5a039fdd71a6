"""Takes, renews and ends a lock through the client that is generated from the API's document.

The argument is the daemon's socket, and what is printed is the fence. `client` is the generated package.
"""

import sys

import httpx
from client import Client
from client.api.lock import join_lock, lock_try_acquire
from client.api.participants import end_participant, get_participant, renew_lease
from client.models import LockJoined, LockJoinRequest, LockJoinRequestCallType0, Participant


def expect(response, status, kind):
    assert response.status_code == status and isinstance(response.parsed, kind), response
    return response.parsed


def main():
    transport = httpx.HTTPTransport(uds=sys.argv[1])
    with Client("http://wok", httpx_args={"transport": transport}) as client:
        acquire = LockJoinRequestCallType0.ACQUIRE
        request = LockJoinRequest(call=acquire, detached=True, lease="1m", app="generated")
        joined = expect(join_lock.sync_detailed(client=client, body=request), 201, LockJoined)
        own, claim = joined.participant, joined.held
        assert joined.value.fence == claim.fence, joined
        renewed = expect(renew_lease.sync_detailed(own, client=client), 200, Participant)
        assert renewed.held.fence == claim.fence, renewed
        # It is not free, and it is when its participant has ended.
        busy = lock_try_acquire.sync_detailed(client=client)
        assert busy.status_code == 200 and busy.parsed is None, busy
        ended = end_participant.sync_detailed(own, client=client)
        assert ended.status_code == 204, ended
        gone = get_participant.sync_detailed(own, client=client)
        assert gone.status_code == 404, gone
        free = lock_try_acquire.sync_detailed(client=client)
        assert free.status_code == 200 and free.parsed.fence > claim.fence, free
        print(claim.fence)


main()
