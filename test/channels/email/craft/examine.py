"""Reads mails as Python's standard library does, checks their DKIM signatures by dkimpy, and says in JSON what it found.

Its input is {"key": base64, "mails": [base64]}.
"""

import base64
import email
import email.policy
import hashlib
import json
import sys

import dkim

given = json.load(sys.stdin)
record = ("v=DKIM1; k=rsa; p=" + given["key"]).encode()


def examined(source):
    message = email.message_from_bytes(source, policy=email.policy.SMTP)
    defects = []
    for part in message.walk():
        defects += [repr(defect) for defect in part.defects]
        for name, value in part.items():
            defects += [f"{name}: {defect!r}" for defect in value.defects]
    leaves = [part for part in message.walk() if not part.is_multipart()]
    head = {
        name: str(message[name])
        for name in ("subject", "from", "to", "cc", "in-reply-to", "references", "x-ticket")
        if message[name] is not None
    }
    return {
        "defects": defects,
        "head": head,
        "names": [name.lower() for name in message.keys()],
        "types": [part.get_content_type() for part in message.walk()],
        "texts": [
            part.get_content() for part in leaves if part.get_content_type() in ("text/plain", "text/html")
        ],
        "files": [
            {
                "filename": part.get_filename(),
                "id": part["content-id"],
                "type": str(part["content-type"]),
                "sha256": hashlib.sha256(part.get_payload(decode=True)).hexdigest(),
            }
            for part in leaves
            if part.get_filename() is not None
        ],
        "isSigned": dkim.verify(source, dnsfunc=lambda name, timeout=5: record),
    }


json.dump([examined(base64.b64decode(mail)) for mail in given["mails"]], sys.stdout)
