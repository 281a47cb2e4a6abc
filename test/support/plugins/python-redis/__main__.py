"""A kind of Mayfly in Python, with nothing but grpcio: users of a Redis server.

go-plugin has no library for Python, so this file has its handshake, too.
"""

import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from base64 import b64encode
from concurrent import futures

import grpc

import mayfly_plugin_v1_pb2 as v1
import mayfly_plugin_v1_pb2_grpc as v1_grpc

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["address", "username", "password"],
    "properties": {
        "address": {"type": "string", "x-upstream": True, "description": "Host and port."},
        "username": {"type": "string", "description": "May change users."},
        "password": {"type": "string", "x-secret": True, "description": "Of that user."},
    },
}


class Refused(Exception):
    """Redis answered with an error."""


def command(connection, *words):
    """Sends one command and returns the reply: the parts of RESP2 that this plugin needs."""
    parts = [word.encode() for word in words]
    text = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
    connection.sendall(text)
    reader = connection.makefile("rb")

    def read():
        line = reader.readline()
        if len(line) < 3:
            raise OSError("closed")
        sign, rest = line[:1], line[1:-2]
        if sign == b"-":
            raise Refused(rest.decode())
        if sign == b"$":
            size = int(rest)
            return None if size < 0 else reader.read(size + 2)[:-2].decode()
        if sign == b"*":
            return [read() for _ in range(int(rest))]
        return rest.decode()

    return read()


class Kind(v1_grpc.KindServicer):
    settings = None

    def Describe(self, request, context):
        return v1.Description(
            type="python-redis",
            title="Redis, by a plugin in Python",
            version="1.0.0",
            config_schema_json=json.dumps(SCHEMA),
            revokes=True,
            recovers=True,
            scopes=[v1.ScopeForm(form="read:<prefix>", gives="read the keys that begin with a prefix")],
            scopes_help="read: and the beginning of the keys.",
            environment={"REDISCLI_AUTH": "{password}"},
        )

    def Open(self, request, context):
        self.settings = json.loads(request.config_json)
        return v1.OpenResponse()

    def Check(self, request, context):
        self.call(context, "ACL", "WHOAMI")
        return v1.CheckResponse()

    def Issue(self, request, context):
        password = secrets.token_urlsafe(32)
        username = name_of(request.credential_id)
        digest = hashlib.sha256(password.encode()).hexdigest()
        keys = ["%R~" + scope[len("read:") :] + "*" for scope in request.scopes]
        self.call(context, "ACL", "SETUSER", username, "reset", "on", "#" + digest, "+@read", "+ping", *keys)
        handle = json.dumps({"username": username})
        fields = json.dumps({"username": username, "password": password})
        return v1.IssueResponse(fields_json=fields, handle_json=handle, facts_json=handle)

    def Revoke(self, request, context):
        self.call(context, "ACL", "DELUSER", name_of(request.credential_id))
        return v1.RevokeResponse()

    def call(self, context, *words):
        host, port = self.settings["address"].rsplit(":", 1)
        try:
            with socket.create_connection((host, int(port)), timeout=context.time_remaining()) as connection:
                command(connection, "AUTH", self.settings["username"], self.settings["password"])
                return command(connection, *words)
        except Refused:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "Redis refuses the command.")
        except OSError:
            context.abort(grpc.StatusCode.UNAVAILABLE, "Redis cannot be reached.")


def name_of(credential_id):
    return "py_" + credential_id[len("cred_") :]


def make_certificate(folder):
    """A certificate for the life of this process: PEM of the key and of the certificate, and its DER."""
    key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "certificate.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650"]
        + ["-subj", "/CN=localhost/O=Mayfly", "-addext", "subjectAltName=DNS:localhost"]
        + ["-keyout", key, "-out", certificate],
        check=True,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    der = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-outform", "DER"], check=True, stdout=subprocess.PIPE
    ).stdout
    with open(key, "rb") as one, open(certificate, "rb") as other:
        return (one.read(), other.read()), der


class Health(grpc.GenericRpcHandler):
    """grpc.health.v1.Health/Check: field 1 is 1 (SERVING). grpcio-health-checking is another package."""

    def service(self, details):
        if details.method == "/grpc.health.v1.Health/Check":
            return grpc.unary_unary_rpc_method_handler(lambda request, context: b"\x08\x01")
        return None


class Controller(grpc.GenericRpcHandler):
    """plugin.GRPCController/Shutdown."""

    def __init__(self):
        self.asked = threading.Event()

    def service(self, details):
        if details.method != "/plugin.GRPCController/Shutdown":
            return None

        def shut_down(request, context):
            self.asked.set()
            return b""

        return grpc.unary_unary_rpc_method_handler(shut_down)


def main():
    if os.environ.get("MAYFLY_PLUGIN") != "mayfly.plugin.v1":
        sys.exit("This is a plugin of Mayfly; Mayfly starts it.")
    folder = os.environ["PLUGIN_UNIX_SOCKET_DIR"]
    with tempfile.TemporaryDirectory(dir=folder) as private:
        pair, der = make_certificate(private)
    credentials = grpc.ssl_server_credentials(
        [pair], root_certificates=os.environ["PLUGIN_CLIENT_CERT"].encode(), require_client_auth=True
    )
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    controller = Controller()
    v1_grpc.add_KindServicer_to_server(Kind(), server)
    server.add_generic_rpc_handlers((Health(), controller))
    path = os.path.join(folder, "kind-%s" % secrets.token_hex(8))
    server.add_secure_port("unix:" + path, credentials)
    server.start()
    certificate = b64encode(der).decode().rstrip("=")
    print("1|1|unix|%s|grpc|%s" % (path, certificate), flush=True)
    # A host that was killed asks nothing.
    parent = os.getppid()
    while not controller.asked.wait(timeout=0.5):
        if os.getppid() != parent:
            break
    server.stop(grace=1).wait()


if __name__ == "__main__":
    main()
