"""Tests of the Python client against a running server: WAYBILL_URL, WAYBILL_KEY. Run by `python.test.ts`."""

from __future__ import annotations

import base64
import contextlib
import datetime
import http.server
import os
import socket
import threading
import time
import unittest

from waybill import InvalidSecret, InvalidWebhook, Waybill, WaybillError, verify_webhook

URL, KEY = os.environ["WAYBILL_URL"], os.environ["WAYBILL_KEY"]
HELLO = {"to_address": "ann@example.com", "subject": "Hello", "html": "<p>Hello</p>"}


def client(**options) -> Waybill:
    return Waybill(URL, KEY, **options)


class Faulty:
    """A server that gives each request the next answer of a list: a status with headers, or None to hang up."""

    def __init__(self, answers) -> None:
        self.requests: list[dict[str, str]] = []
        faulty = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                faulty.requests.append(dict(self.headers))
                answer = answers.pop(0)
                if answer is None:
                    self.connection.close()
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, *_) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Faulty:
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()


class Peer:
    """A server whose connections do what a function says for each request; a false answer closes the connection."""

    class Connection:
        def __init__(self, raw: socket.socket) -> None:
            self.raw = raw

        def send(self, data: bytes) -> None:
            self.raw.sendall(data)

        def answer(self, body: bytes) -> None:
            self.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    def __init__(self, serve) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.serve = serve
        self.asked = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.talk, args=[self.listener.accept()[0]], daemon=True).start()

    def talk(self, raw: socket.socket) -> None:
        peer = Peer.Connection(raw)
        with raw, contextlib.suppress(OSError):
            goes_on = True
            while goes_on and raw.recv(65536):
                self.asked += 1
                goes_on = self.serve(peer, self.asked)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_) -> None:
        self.listener.close()


PENDING = (202, {}, b'{"job_id":"1","status":"pending"}')


class AgainstTheServer(unittest.TestCase):
    def test_sends_an_email_and_reads_what_became_of_it(self) -> None:
        job = client().send_email(HELLO)
        self.assertEqual(job["status"], "pending")
        ended = client().wait_job(job["job_id"])
        self.assertEqual(ended, {"job_id": job["job_id"], "status": "success", "result": {}})

    def test_a_send_with_the_same_key_is_one_send(self) -> None:
        first = client().send_email(HELLO, idempotency_key="python-1")
        self.assertEqual(client().send_email(HELLO, idempotency_key="python-1"), first)
        with self.assertRaises(WaybillError) as raised:
            client().send_email({**HELLO, "subject": "Other"}, idempotency_key="python-1")
        self.assertEqual((raised.exception.status, raised.exception.code), (422, "unprocessable"))

    def test_calls_have_the_names_that_they_have_in_typescript(self) -> None:
        with client() as waybill:
            job = waybill.emails.send(HELLO)
            self.assertEqual(waybill.jobs.get(job["job_id"])["job_id"], job["job_id"])
            self.assertEqual(list(waybill.suppressions.list()), [])
            self.assertEqual(waybill.wallet.send, waybill.send_wallet)

    def test_a_refusal_says_why(self) -> None:
        with self.assertRaises(WaybillError) as raised:
            client().send_whatsapp({"phone_number": "+1 555", "template_id": "order_ready"})
        self.assertEqual((raised.exception.status, raised.exception.code), (400, "bad_request"))
        self.assertEqual((raised.exception.reason, raised.exception.param), ("invalid_member", "phone_number"))
        self.assertRegex(str(raised.exception), "phone_number")
        self.assertTrue(raised.exception.request_id)
        with self.assertRaises(WaybillError) as raised:
            client().send_email({**HELLO, "html": "<p>Hi</p><script></script>"})
        self.assertEqual([one["rule"] for one in raised.exception.violations], ["script"])
        with self.assertRaises(WaybillError) as raised:
            Waybill(URL, "wb_nobody").list_domains()
        self.assertEqual(raised.exception.code, "unauthorized")

    def test_downloads_a_pass(self) -> None:
        data = {"serial_number": "python-1", "organization_name": "Acme", "description": "Ticket"}
        job = client().create_pass({"pass_type": "apple", "pass_data": data})
        ended = client().wait_job(job["job_id"])
        self.assertEqual(client().download_pass(ended["result"]["pass_id"])[:2], b"PK")

    def test_pages_through_all_events(self) -> None:
        jobs = {client().send_email(HELLO)["job_id"] for _ in range(5)}
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        for _ in range(200):
            found = {
                event["job_id"]
                for event in client().iterate_events(from_=today, to=today, event_type="sent", limit=2)
            }
            if jobs <= found:
                return
            time.sleep(0.05)
        self.fail("not all events were found")


class Repeats(unittest.TestCase):
    def test_a_send_is_repeated_with_its_key_and_no_other_is_unsafe(self) -> None:
        waits: list[float] = []
        with Faulty([None, (429, {"Retry-After": "7"}, b"{}"), (502, {}, b""), PENDING]) as server:
            sent = Waybill(server.url, "k", sleep=waits.append).send_email(HELLO)
            self.assertEqual(sent["job_id"], "1")
            keys = {request["Idempotency-Key"] for request in server.requests}
        self.assertEqual((len(server.requests), len(keys), waits[1]), (4, 1, 7.0))
        with Faulty([None, PENDING]) as server:
            with self.assertRaises(WaybillError) as raised:
                Waybill(server.url, "k", sleep=waits.append).verify_domain("acme.example")
        self.assertEqual((raised.exception.code, len(server.requests)), ("no_answer", 1))

    def test_a_wait_that_is_too_long_is_not_waited_for(self) -> None:
        with Faulty([(429, {"Retry-After": "3600"}, b'{"error":"later"}')]) as server:
            with self.assertRaises(WaybillError) as raised:
                Waybill(server.url, "k", sleep=self.fail).list_domains()
        self.assertEqual((str(raised.exception), raised.exception.retry_after), ("later", 3600))

    def test_an_answer_that_is_not_json_is_an_error(self) -> None:
        with Faulty([(200, {}, b"<html>")]) as server:
            with self.assertRaises(WaybillError) as raised:
                Waybill(server.url, "k").list_domains()
        self.assertEqual(raised.exception.code, "bad_answer")

    def test_a_name_cannot_lead_to_another_operation(self) -> None:
        for name in ("", ".", ".."):
            with self.assertRaises(ValueError):
                client().get_domain(name)


class Connections(unittest.TestCase):
    def test_one_serves_many_calls_and_one_that_was_closed_meanwhile_is_not_used_again(self) -> None:
        seen: list[object] = []
        with Peer(lambda peer, at: [seen.append(peer), peer.answer(b'{"domains":[]}')] and at != 3) as server:
            caller = Waybill(server.url, "k")
            for _ in range(5):
                self.assertEqual(caller.list_domains(), {"domains": []})
        self.assertEqual(len(set(map(id, seen))), 2)

    def test_an_attempt_ends_at_its_time_however_slowly_its_bytes_come(self) -> None:
        def drip(peer: Peer.Connection, _at: int) -> bool:
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b" " * 100:
                peer.send(bytes([byte]))
                time.sleep(0.02)
            return False

        with Peer(drip) as server:
            began = time.monotonic()
            with self.assertRaises(WaybillError) as raised:
                Waybill(server.url, "k", timeout=0.2, retries=0).list_domains()
            self.assertEqual(raised.exception.code, "timeout")
            self.assertLess(time.monotonic() - began, 1.9)
            with self.assertRaises(WaybillError) as raised:
                Waybill(server.url, "k").wait_job("1", within=0.2)
            self.assertRegex(str(raised.exception), "job 1 is not known after 0.2 s")

    def test_a_redirect_is_no_answer_and_nobody_else_is_called(self) -> None:
        with Faulty([]) as other, Faulty([(302, {"Location": other.url + "/v1/domains"}, b"")]) as server:
            with self.assertRaises(WaybillError) as raised:
                Waybill(server.url, "k").list_domains()
        self.assertEqual((raised.exception.code, other.requests), ("redirected", []))

    def test_an_ipv6_address_has_the_port_of_its_scheme(self) -> None:
        caller = Waybill("https://[2001:db8::1]", "k")
        self.assertEqual((caller._host, caller._port), ("2001:db8::1", 443))

    def test_strange_answers_are_errors_of_ours(self) -> None:
        deep = b"[" * 100_000
        for answer in (b"[]", b'{"events":{}}', b"null", deep, b"\xff"):
            with Faulty([(200, {}, answer)]) as server, self.assertRaises(WaybillError) as raised:
                list(Waybill(server.url, "k").iterate_events(from_="2026-01-01", to="2026-01-01"))
            self.assertEqual(raised.exception.code, "bad_answer")
        refusals = [(429, {"Retry-After": "²"}, b'{"error":1,"violations":2}')]
        with Faulty(refusals) as server, self.assertRaises(WaybillError) as raised:
            Waybill(server.url, "k", retries=0).list_domains()
        self.assertEqual((raised.exception.retry_after, raised.exception.violations), (None, []))


class Keys(unittest.TestCase):
    def test_a_failed_send_tells_its_key(self) -> None:
        with Faulty([(500, {}, b"{}"), None]) as server:
            with self.assertRaises(WaybillError) as raised:
                Waybill(server.url, "k", retries=1, sleep=lambda _: None).send_email(HELLO)
            keys = {request["Idempotency-Key"] for request in server.requests}
        self.assertEqual(keys, {raised.exception.idempotency_key})

    def test_a_malformed_key_is_refused_and_not_shown(self) -> None:
        for key in ("", "ключ", "two\nlines", "x" * 256):
            with self.assertRaises(ValueError):
                client().send_email(HELLO, idempotency_key=key)
        for key in ("", "wb_secret\n", "wb_сecret", " wb_secret"):
            with self.assertRaises(ValueError) as raised:
                Waybill(URL, key)
            self.assertNotIn("cret", str(raised.exception))


# The example of the specification of Standard Webhooks.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = '{"test": 2432232314}'
SENT = 1_614_265_330
HEADERS = {
    "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(SENT),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


class Webhooks(unittest.TestCase):
    def test_a_call_of_the_service_is_taken(self) -> None:
        self.assertEqual(verify_webhook(BODY, HEADERS, SECRET, now=SENT + 10), {"test": 2432232314})
        rotated = {**HEADERS, "webhook-signature": f"v1,AAAA v1a,xyz {HEADERS['webhook-signature']}"}
        other = "whsec_" + base64.b64encode(b"another secret of 24 bytes").decode()
        self.assertEqual(verify_webhook(BODY.encode(), rotated, [other, SECRET], now=SENT), {"test": 2432232314})

    def test_any_other_is_refused(self) -> None:
        for body, headers, now in [
            (BODY + " ", HEADERS, SENT),
            (BODY, {**HEADERS, "Webhook-Id": "msg_2"}, SENT),
            (BODY, HEADERS, SENT + 301),
            (BODY, HEADERS, SENT - 301),
            (BODY, {**HEADERS, "webhook-timestamp": "soon"}, SENT),
            (BODY, {**HEADERS, "webhook-signature": "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, SENT),
            (BODY, {**HEADERS, "webhook-signature": "v1,äöü"}, SENT),
            (BODY, {}, SENT),
        ]:
            with self.subTest(headers=headers, now=now), self.assertRaises(InvalidWebhook):
                verify_webhook(body, headers, SECRET, now=now)


    def test_nothing_is_checked_against_no_secret(self) -> None:
        for secret in (None, "", "whsec_", [], ["", SECRET], "whsec_MfKQ9r8GKYqr", "whsec_!", "whsec_ä"):
            with self.subTest(secret=secret), self.assertRaises(InvalidSecret):
                verify_webhook(BODY, HEADERS, secret, now=SENT)


if __name__ == "__main__":
    unittest.main()
