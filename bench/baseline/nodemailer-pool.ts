/**
 * The baseline for the e-mail channel: placeholders that are replaced, and nodemailer's own pool, which composes, signs
 * and sends. `bun bench/baseline/nodemailer-pool.ts <smtp url> <mails> <connections> <signed 0|1> <size>` prints its
 * result as JSON. It tracks no links and signs only the message.
 */
import { generateKeyPairSync, randomUUID } from "node:crypto";
import nodemailer from "nodemailer";
import { MAIL_CONTENTS } from "../load/mail-content.ts";
import { mailRun } from "../load/mail-run.ts";

const [, , smtpUrl = "", mails = "0", connections = "1", signed = "0", size = "small"] = process.argv;

const DOMAIN = "shop.example.test";
const { hostname: host, port } = new URL(smtpUrl);
const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "der" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
});
const pool = nodemailer.createTransport({
  pool: true,
  host,
  port: Number(port),
  ignoreTLS: true,
  maxConnections: Number(connections),
  maxMessages: Number.POSITIVE_INFINITY,
  ...(signed === "1" ? { dkim: { domainName: DOMAIN, keySelector: "bench", privateKey } } : {}),
});
const { subject, html, data } = MAIL_CONTENTS[size === "small" ? "small" : "6 KB"];
const values = new Map(Object.entries(data));
const filled = (text: string) => text.replace(/\{\{\.(\w+)\}\}/g, (_, name: string) => String(values.get(name) ?? ""));

const run = await mailRun(Number(mails), Number(connections), async () => {
  const id = randomUUID();
  const body = filled(html);
  await pool.sendMail({
    from: { address: `orders@${DOMAIN}`, name: "Shop" },
    to: { address: "ann.example@customer.example.com", name: "Ann Example" },
    envelope: { from: `b+${id}@bounce.${DOMAIN}`, to: "ann.example@customer.example.com" },
    messageId: `<${id}@${DOMAIN}>`,
    subject: filled(subject),
    html: `${body}<img src="https://send.example.test/t/o/${id}.gif" width="1" height="1" alt="">`,
    text: body.replace(/<[^>]*>/g, "").trim(),
    headers: { "List-Unsubscribe": `<https://send.example.test/u/${id}>` },
  });
});
pool.close();
console.log(JSON.stringify(run));
