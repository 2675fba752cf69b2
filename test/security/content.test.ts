import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { unzipSync } from "fflate";
import { Attacks, shown } from "./support/attacks.ts";
import { messageTo } from "./support/message-to.ts";
import { startTarget, type Target } from "./support/target.ts";

/* Hostile content of a tenant: code in the variables of templates, and in the parts of a pass's file. */

setDefaultTimeout(90_000);
const attacks = new Attacks("content");

let target: Target;
let made = 0;

beforeAll(async () => {
  target = await startTarget();
  const template = { channel: "email", subject: "[{{.x}}]", html: '<p title="{{.x}}">[{{.x}}]</p>', text: "[{{.x}}]" };
  await target.operator("PUT", "/tenants/mallory/templates/of-x", template);
});
afterAll(() => target?.stop());

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"' };

/** The text of the HTML that a reader sees. */
function plain(html: string): string {
  return html.replace(/&(?:#(\d+)|(\w+));/g, (_all, code: string | undefined, name: string | undefined) =>
    code === undefined ? (ENTITIES[name ?? ""] ?? "") : String.fromCharCode(Number(code)),
  );
}

test("a variable's value is a text, in whatever language it is a program", async () => {
  const values = [
    "{{.secret}}",
    "{{ .x }}",
    "{{{.x}}}",
    "{{.__proto__}}",
    "{{constructor.constructor('return process')()}}",
    "{{#with this}}{{lookup . 'secret'}}{{/with}}",
    "{{range .}}{{.}}{{end}}",
    '{{template "x"}}',
    '{{printf "%s" .secret}}',
    "{% include '/etc/passwd' %}",
    "{%- for x in config -%}{{ x }}{%- endfor -%}",
    `\${7*7}`,
    `\${process.env.MASTER_KEY}`,
    "#{7*7}",
    "<%= 7*7 %>",
    "<%= process.mainModule.require('fs') %>",
    "#set($x=7*7)$x",
    "*{7*7}",
    "@(7*7)",
    "[[${7*7}]]",
    "%{7*7}",
    "`7*7`",
    "$(id)",
    "; cat /etc/passwd",
    "{{7*7}}",
    "{7*7}",
    "%s%s%n",
    "$& $` $' $1",
    "\\u007b\\u007b.secret}}",
  ];
  const markup = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</p><iframe srcdoc=x>",
    "&lt;script&gt;",
    "javascript:alert(1)",
    '" style="background:url(//evil.example)',
  ];
  await attacks.run([...values, ...markup], shown, async (x) => {
    const to_address = `reader-${(made += 1)}@example.com`;
    const body = { to_address, template_id: "of-x", data: { x, secret: "the-secret-of-the-data" } };
    const accepted = await target.call(target.attacker, "POST", "/v1/send/email", body);
    const job = await target.ended(target.attacker, accepted);
    if (job.status !== "success") return `the job is ${job.status}`;
    const { text, subject } = await messageTo(target, to_address);
    if (/the-secret-of-the-data|\[49\]|root:/.test(text)) return text;
    if (subject !== `[${x}]`) return `the subject is ${subject}`;
    const html = /<p title="([^"]*)">\[([^]*?)\]<\/p>/.exec(text);
    if (html === null) return `it left its place: ${text.slice(-600)}`;
    if (/[<>]/.test(`${html[1]}${html[2]}`)) return `it brought markup: ${html[0]}`;
    return plain(html[1] ?? "") === x && plain(html[2] ?? "") === x ? null : `${html[0]} instead of ${x}`;
  });
});

/** The beginning and the end of a picture, with the size that its header states. */
function png(width: number, height: number, more = Buffer.alloc(40)): Buffer {
  const size = Buffer.alloc(8);
  size.writeUInt32BE(width, 0);
  size.writeUInt32BE(height, 4);
  const start = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
  return Buffer.concat([start, size, more, Buffer.from("0000000049454e44ae426082", "hex")]);
}

test("a picture that is a bomb, a file or none at all becomes part of no pass", async () => {
  const pictures: readonly (readonly [name: string, picture: unknown])[] = [
    ["50,000 by 50,000 pixels", png(50_000, 50_000).toString("base64")],
    ["4,294,967,295 pixels wide", png(0xffffffff, 1).toString("base64")],
    ["no pixels", png(0, 0).toString("base64")],
    ["its beginning alone", png(29, 29).subarray(0, 30).toString("base64")],
    ["6 MB", png(29, 29, Buffer.alloc(6_000_000)).toString("base64")],
    ["20 MB", png(29, 29, Buffer.alloc(20_000_000)).toString("base64")],
    ["base64 of nothing", ""],
    [
      "base64 with line ends",
      png(29, 29)
        .toString("base64")
        .replace(/(.{20})/g, "$1\r\n"),
    ],
    ["base64url", png(29, 29, Buffer.alloc(40, 0xfb)).toString("base64url")],
    ["a page", Buffer.from("<svg onload=alert(1)>").toString("base64")],
    ["a data URL of a page", `data:text/html;base64,${Buffer.from("<script>").toString("base64")}`],
    ["an address", "http://127.0.0.1:1/icon.png"],
    ["a path", "/etc/passwd"],
    ["a file URL", "file:///etc/passwd"],
    ["an object", { path: "/etc/passwd" }],
    ["a list", [png(29, 29).toString("base64")]],
  ];
  await attacks.run(
    pictures,
    ([name]) => name,
    async ([, icon_base64]) => {
      const pass_data = { ...APPLE, serial_number: `s-${(made += 1)}`, icon_base64 };
      const seen = await target.call(target.attacker, "POST", "/v1/passes/create", { pass_type: "apple", pass_data });
      if (icon_base64 === "" && seen.status === 202) return null;
      return seen.status === 400 || seen.status === 413 ? null : `answered ${seen.status}`;
    },
  );
});

const APPLE = { organization_name: "Club", description: "Ticket" };

test("a pass's file holds the files that it must, whatever its texts and members are called", async () => {
  const usual = /^(?:pass\.json|manifest\.json|signature|(?:icon|logo|strip|thumbnail)(?:@[23]x)?\.png)$/;
  const names = [
    "../../etc/cron.d/x",
    "..\\x",
    "/x",
    "pass.json",
    "en.lproj/pass.strings",
    "icon.png\0.exe",
    "__proto__",
    "CON",
  ];
  const members = (name: string): readonly object[] => [
    { serial_number: name },
    { organization_name: name, logo_text: name },
    { back_fields: [{ key: name, value: name, label: name }] },
    { [name]: png(29, 29).toString("base64") },
    { [`${name}_base64`]: png(29, 29).toString("base64") },
  ];
  const table = names.flatMap((name) => members(name).map((more) => ({ name: shown(JSON.stringify(more)), more })));
  await attacks.run(
    table,
    ({ name }) => name,
    async ({ more }) => {
      const pass_data = { ...APPLE, serial_number: `s-${(made += 1)}`, ...more };
      const seen = await target.call(target.attacker, "POST", "/v1/passes/create", { pass_type: "apple", pass_data });
      if (seen.status === 400) return null;
      const { result } = await target.ended(target.attacker, seen);
      const files = unzipSync(new Uint8Array(Buffer.from(result.pkpass_base64, "base64")));
      const odd = Object.keys(files).find((file) => !usual.test(file));
      if (odd !== undefined) return `it holds ${odd}`;
      const path = `/v1/passes/${result.pass_id}/download`;
      const { headers } = await target.probe({ method: "GET", path, headers: { "x-api-key": target.attacker.apiKey } });
      const named = headers.get("content-disposition") ?? "";
      expect(headers.get("content-type")).toBe("application/vnd.apple.pkpass");
      return /^attachment; filename="[\w.-]+"$/.test(named) ? null : `it is called ${named}`;
    },
  );
});
