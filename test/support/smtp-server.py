"""A mail server that writes each message as one line of JSON. Arguments: port, then for TLS mode (starttls or implicit), cert, key."""
import json
import ssl
import sys
import time

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        print(
            json.dumps(
                {
                    "from": envelope.mail_from,
                    "to": envelope.rcpt_tos,
                    "data": envelope.content.decode(),
                    "user": session.auth_data and session.auth_data.login.decode(),
                }
            ),
            flush=True,
        )
        return "250 taken"


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=data.password == b"right secret", handled=False, auth_data=data)


port, *tls = sys.argv[1:]
options = {}
if tls:
    mode, cert, key = tls
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    options = {"authenticator": authenticate, "auth_required": True}
    if mode == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    else:
        # The module does not see the TLS of its own listener.
        options |= {"ssl_context": context, "auth_require_tls": False}
controller = Controller(Handler(), hostname="127.0.0.1", port=int(port), **options)
controller.start()
print("ready", flush=True)
while True:
    time.sleep(3600)
