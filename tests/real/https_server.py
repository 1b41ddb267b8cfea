#!/usr/bin/env python3
"""A server of HTTPS (or HTTP) that answers as a script says, for tests.

    https_server.py SCRIPT LOG

It listens at a free port of 127.0.0.1, which it prints as its first line. SCRIPT is JSON,
with ' in place of ":

    {'certificate': PATH, 'key': PATH,  without them it is plain HTTP
     'client_ca': PATH,                 a client must have a certificate of this CA
     'routes': [{'method': 'GET', 'path': '/a/b', 'answers': [ANSWER, ...]}]}

A route's path with a "?" is compared with the whole target, others without the query.
Answers are given in their order, the last one for ever. ANSWER, all parts optional:

    {'status': 200, 'headers': {NAME: VALUE}, 'body': TEXT or any other JSON,
     'delay_ms': N,         before anything is said
     'cut_after': N,        after so many bytes of the body the connection is reset
     'endless': true,       the body goes on until the client gives up
     'needs': {NAME: VALUE},  headers without which the answer is status 401
     'jwt_key': PATH}       the request's form must have an assertion signed with the
                            other half of this public key, or the answer is status 400

LOG gets a line of JSON for each request, before it is answered: method, path, headers
(names in small letters), body, and "unexpected" when no route is for it, "claims" of a
JWT that was verified.
"""

import base64
import http.server
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ENDLESS_BYTES_MAX = 1 << 28     # far more than any client may take


def decode(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def verified_claims(body, key):
    """The claims of the assertion in a form, None when its signature is not good."""
    form = urllib.parse.parse_qs(body)
    parts = form.get("assertion", [""])[0].split(".")
    if len(parts) != 3:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "signature")
        with open(path, "wb") as file:
            file.write(decode(parts[2]))
        done = subprocess.run(
            ["openssl", "dgst", "-sha256", "-verify", key, "-signature", path],
            input=(parts[0] + "." + parts[1]).encode(), capture_output=True, check=False)
    if done.returncode != 0:
        return None
    return {"head": json.loads(decode(parts[0])), "claims": json.loads(decode(parts[1])),
            "grant_type": form.get("grant_type", [""])[0]}


class Script:
    def __init__(self, text, log):
        self.content = json.loads(text.replace("'", '"'))
        self.log = log
        self.lock = threading.Lock()
        for route in self.content["routes"]:
            route["given"] = 0

    def answer(self, method, target):
        """The next answer for a request; None when there is no route."""
        with self.lock:
            for route in self.content["routes"]:
                path = target if "?" in route["path"] else target.split("?")[0]
                if route["path"] == path and route.get("method", "GET") == method:
                    number = min(route["given"], len(route["answers"]) - 1)
                    route["given"] += 1
                    return route["answers"][number]
        return None

    def note(self, entry):
        with self.lock, open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script = None

    def log_message(self, format, *args):
        pass

    def reset(self):
        """The connection ends as if the machine had gone."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   struct.pack("ii", 1, 0))
        self.wfile.flush()
        os.close(self.connection.detach())

    def say_endless(self):
        chunk = b"x" * 65536
        self.close_connection = True
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(ENDLESS_BYTES_MAX // len(chunk)):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))

    def say(self, answer):
        body = answer.get("body", "")
        body = (body if isinstance(body, str) else json.dumps(body)).encode()
        headers = answer.get("headers", {})
        time.sleep(answer.get("delay_ms", 0) / 1000)
        self.send_response(answer.get("status", 200))
        if "Content-Type" not in headers:
            self.send_header("Content-Type", "application/json")
        for name, value in headers.items():
            self.send_header(name, value)
        if answer.get("endless"):
            self.say_endless()
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if "cut_after" in answer:
            self.wfile.write(body[:answer["cut_after"]])
            self.reset()
            return
        self.wfile.write(body)

    def serve(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size).decode("utf-8", "replace")
        entry = {"method": self.command, "path": self.path, "body": body,
                 "headers": {name.lower(): value for name, value in self.headers.items()}}
        answer = self.script.answer(self.command, self.path)
        if answer is None:
            entry["unexpected"] = True
            answer = {"status": 404, "body": {"message": "no route"}}
        for name, value in answer.get("needs", {}).items():
            if self.headers.get(name) != value:
                entry["refused"] = name
                answer = {"status": 401, "body": {"message": "needs " + name}}
        if "jwt_key" in answer:
            entry["claims"] = verified_claims(body, answer["jwt_key"])
            if entry["claims"] is None:
                answer = {"status": 400, "body": {"error": "invalid_grant"}}
        self.script.note(entry)
        try:
            self.say(answer)
        except OSError:
            self.close_connection = True    # the client has heard enough

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    context = None

    def finish_request(self, request, client_address):
        """The handshake is made in the request's own thread."""
        if self.context is not None:
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # a client that left is fine
            super().handle_error(request, client_address)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        script = Script(file.read(), sys.argv[2])
    Handler.script = script
    server = Server(("127.0.0.1", script.content.get("port", 0)), Handler)
    if "certificate" in script.content:
        server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.context.load_cert_chain(script.content["certificate"],
                                       script.content["key"])
        if "client_ca" in script.content:
            server.context.verify_mode = ssl.CERT_REQUIRED
            server.context.load_verify_locations(script.content["client_ca"])
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
