import type { JsonObject } from "../../src/domain/texts/json.ts";

/** A template mail: sent repeatedly, with different data each time. */
export interface MailContent {
  readonly subject: string;
  readonly html: string;
  readonly data: JsonObject;
}

export const MAIL_SIZES = ["small", "6 KB"] as const;
export type MailSize = (typeof MAIL_SIZES)[number];

const STYLE =
  "margin: 0 0 16px; font-family: Arial, Helvetica, sans-serif; font-size: 14px; line-height: 1.5; color: #333333;";

const ARTICLES = [1, 2, 3, 4, 5];

/** An order line with a link. */
function article(nth: number): string {
  return `<tr>
<td style="padding: 8px 0; border-bottom: 1px solid #dddddd;">{{.article${nth}}}</td>
<td style="padding: 8px 0; border-bottom: 1px solid #dddddd;" align="right">{{.price${nth}}}&nbsp;&euro;</td>
<td style="padding: 8px 0;"><a href="https://shop.example.test/articles/${nth}?from=mail&amp;order={{.order}}">View</a></td>
</tr>
`;
}

/** A two-sentence confirmation, and the full confirmation of an order. */
export const MAIL_CONTENTS: Readonly<Record<MailSize, MailContent>> = {
  small: {
    subject: "Your order 4711 is on its way",
    html: "<h1>On its way</h1><p>Hello {{.name}}, your order {{.order}} has left us and arrives {{.day}}.</p>",
    data: { name: "Ann", order: "4711", day: "on Tuesday" },
  },
  "6 KB": {
    subject: "Your order {{.order}} is on its way",
    html: `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Order {{.order}}</title>
<style>body { margin: 0; } table { border-collapse: collapse; } @media (max-width: 600px) { table { width: 100%; } }</style>
</head>
<body>
<h1 style="${STYLE}">On its way, {{.name}}</h1>
<p style="${STYLE}">Your order {{.order}} has left us — it arrives {{.day}}. This is what is in it:</p>
<table width="600">
${ARTICLES.map(article).join("")}</table>
<p style="${STYLE}">We hope that you enjoy what you have bought. Should something not be as it should be, tell us within thirty days.</p>
<p style="${STYLE}">You reach us at <a href="https://shop.example.test/help">shop.example.test/help</a>, every day from eight to eight.</p>
<p style="${STYLE}">Yours, the shop</p>
<p style="${STYLE}">The Shop Ltd, 1 High Street, Anytown. Registered in Anytown, number 123456. You get this message because you ordered.</p>
</body>
</html>
`,
    data: {
      name: "Ann",
      order: "4711",
      day: "on Tuesday",
      ...Object.fromEntries(
        ARTICLES.flatMap((nth) => [
          [`article${nth}`, `A fine thing, number ${nth}, of the best kind`],
          [`price${nth}`, "12.50"],
        ]),
      ),
    },
  },
};
