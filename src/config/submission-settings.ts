import { resolve } from "node:path";
import type { Setting } from "./setting.ts";
import { hostOrAddress, wholeNumber } from "./values.ts";

/** Settings of the role `smtp`, which accepts mail. */
export const SUBMISSION_SETTINGS = {
  submissionPort: {
    name: "SMTP_PORT",
    default: "587",
    meaning: "port of the SMTP listener, which only the role `smtp` has; `0` takes a free one",
    ...wholeNumber(0, 65_535),
  },
  submissionHost: {
    name: "SMTP_HOST",
    default: null,
    unset: "`HOST`",
    meaning: "address of the SMTP listener",
    ...hostOrAddress,
  },
  submissionCertificate: {
    name: "SMTP_TLS_CERT",
    default: null,
    unset: "a self-signed one, made once and kept in `WAYBILL_HOME/smtp-certificate.pem`",
    meaning: "path of the SMTP listener's certificate with its chain, in PEM; read again when the file changes",
    expected: "the path of a file",
    parse: (text) => resolve(text),
  },
  submissionKey: {
    name: "SMTP_TLS_KEY",
    default: null,
    unset: "as above",
    meaning: "path of that certificate's private key, in PEM",
    expected: "the path of a file",
    parse: (text) => resolve(text),
  },
} satisfies Record<string, Setting<unknown>>;
