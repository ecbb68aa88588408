"""A small OpenID provider on loopback: real HTTP, real RS256 signatures, PKCE, codes that are good once.

    with running_provider() as provider:
        provider.person = {"sub": "1", "preferred_username": "dora"}       who is signed in there
        provider.alter = lambda claims: claims | {"aud": "somebody else"}  what the next tokens say instead

Whoever comes to /authorize is `person`, without being asked.
"""

import json
import secrets
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

CLIENT_ID, CLIENT_SECRET = "qdesk", "the client's s:cret%"

Claims = dict[str, Any]


class Provider:
    def __init__(self, url: str) -> None:
        self.url = url
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
        self.published: Any = [self.key]
        self.person: Claims = {"sub": "1", "preferred_username": "dora"}
        self.userinfo: Claims = {}
        self.about: Claims = {}  # more, or something else, in the discovery document
        self.declines = False
        self.alter: Callable[[Claims], Claims] = lambda claims: claims
        self.sign: Callable[[Claims], str] = self.signed
        self.asked: list[str] = []  # paths
        self.ended: list[Claims] = []  # the claims of those who were signed out
        self._codes: dict[str, dict[str, str]] = {}  # what was sent to /authorize, by code
        self._tokens: set[str] = set()

    def signed(self, claims: Claims) -> str:
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)

    def document(self) -> Claims:
        paths = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/jwks"}
        paths |= {"userinfo_endpoint": "/userinfo", "end_session_endpoint": "/logout?theme=plain"}
        return {"issuer": self.url, **{name: self.url + path for name, path in paths.items()}, **self.about}

    def keys(self) -> Claims:
        return dict(KeySet(self.published).as_dict(private=False))

    def authorize(self, query: dict[str, str]) -> str:
        """Where to send the browser to."""
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT_ID
        assert query["code_challenge_method"] == "S256"
        back = {"state": query["state"]}
        if self.declines:
            return f"{query['redirect_uri']}?{urlencode(back | {'error': 'access_denied'})}"
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode(back | {'code': code})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, Claims]:
        user, _, password = b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if (unquote(user), unquote(password)) != (CLIENT_ID, CLIENT_SECRET):
            return 401, {"error": "invalid_client"}
        query = self._codes.pop(form.get("code", ""), None)
        fits = query is not None and query["redirect_uri"] == form["redirect_uri"]
        if not fits or query is None or create_s256_code_challenge(form["code_verifier"]) != query["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": query["nonce"]}
        access_token = secrets.token_urlsafe(16)
        self._tokens.add(access_token)
        signed = self.sign(self.alter(claims | self.person))
        return 200, {"access_token": access_token, "token_type": "Bearer", "expires_in": 300, "id_token": signed}

    def end_session(self, query: dict[str, str]) -> str:
        """Where to send the browser to, once the session here has ended of whom the token was given for."""
        assert query["client_id"] == CLIENT_ID
        assert query["theme"] == "plain"
        self.ended.append(jwt.decode(query["id_token_hint"], self.key).claims)
        return query["post_logout_redirect_uri"]

    def about_person(self, authorization: str) -> tuple[int, Claims]:
        if authorization.removeprefix("Bearer ") not in self._tokens:
            return 401, {}
        return 200, {"sub": self.person["sub"], **self.userinfo}


@contextmanager
def running_provider(port: int = 0) -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            provider.asked.append(parts.path)
            match parts.path:
                case "/.well-known/openid-configuration":
                    self._answer(200, provider.document())
                case "/jwks":
                    self._answer(200, provider.keys())
                case "/userinfo":
                    self._answer(*provider.about_person(self.headers["Authorization"]))
                case "/authorize":
                    self._lead(provider.authorize(dict(parse_qsl(parts.query))))
                case "/logout":
                    self._lead(provider.end_session(dict(parse_qsl(parts.query))))
                case _:
                    self._answer(404, {})

        def do_POST(self) -> None:
            provider.asked.append(self.path)
            form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self._answer(*provider.token(form, self.headers.get("Authorization", "")))

        def _lead(self, address: str) -> None:
            self.send_response(302)
            self.send_header("Location", address)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _answer(self, status: int, body: Claims) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        provider = Provider(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield provider
        server.shutdown()
        thread.join()
