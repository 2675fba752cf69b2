import type { JsonObject } from "../../../domain/texts/json.ts";

/** The template that every account begins with. */
export const SANDBOX_TEMPLATES: readonly JsonObject[] = [
  {
    id: "1192339204654487",
    name: "hello_world",
    language: "en_US",
    status: "APPROVED",
    category: "UTILITY",
    parameter_format: "POSITIONAL",
    components: [
      { type: "HEADER", format: "TEXT", text: "Hello World" },
      { type: "BODY", text: "Welcome and congratulations!!" },
      { type: "FOOTER", text: "WhatsApp Business Platform sample message" },
    ],
  },
];

const PAGE = 25;
const PAGE_MAX = 250;

/** Returns one page of the templates whose name contains the requested one, and the cursor of the next. */
export function templatePage(templates: readonly JsonObject[], { searchParams, href }: URL): JsonObject {
  const name = searchParams.get("name") ?? "";
  const fields = searchParams.get("fields")?.split(",") ?? null;
  const limit = Math.min(Number(searchParams.get("limit") ?? PAGE), PAGE_MAX);
  const from = Number(Buffer.from(searchParams.get("after") ?? "", "base64url").toString() || 0);
  const found = templates.filter((one) => String(one["name"]).includes(name));
  const end = from + limit;
  const cursors = { before: formatCursor(from), after: formatCursor(end) };
  const data = found.slice(from, end).map((one) => shown(one, fields));
  if (end >= found.length) return { data, paging: { cursors } };
  const next = new URL(href);
  next.searchParams.set("after", cursors.after);
  return { data, paging: { cursors, next: next.href } };
}

function shown(template: JsonObject, fields: readonly string[] | null): JsonObject {
  if (fields === null) return template;
  return Object.fromEntries(Object.entries(template).filter(([name]) => name === "id" || fields.includes(name)));
}

function formatCursor(at: number): string {
  return Buffer.from(String(at)).toString("base64url");
}
