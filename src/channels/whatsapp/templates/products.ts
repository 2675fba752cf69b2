import { Type } from "@sinclair/typebox";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { optional } from "../../../http/schemas.ts";
import { complaintAboutMembers, presentMembers } from "../../../http/sending/acceptance.ts";
import { complaintAboutLine, line } from "./value-rules.ts";

/** A product of a catalogue. */
export interface Product {
  /** The business's own id for the product. */
  readonly product_retailer_id: string;
  /** Absent: the catalogue that is connected to the sending number. */
  readonly catalog_id?: string;
}

const PRODUCT_ID_CHARS_MAX = 100;
const SECTIONS_MAX = 10;
const PRODUCTS_MAX = 30;
const TITLE_CHARS_MAX = 24;
const CATALOG_ID = /^[0-9]{1,32}$/;

export const ProductId = line(PRODUCT_ID_CHARS_MAX, "Your id of a product in the catalogue (SKU).");
export const CatalogId = Type.String({
  pattern: CATALOG_ID.source,
  description: "The provider's id of the catalogue.",
});

/** The members of a product in a body. */
export const PRODUCT_MEMBERS = { product_retailer_id: ProductId, catalog_id: optional(CatalogId) };

/** Returns a sentence that says why the product `where` is invalid, or null. */
export function complaintAboutProduct(
  { product_retailer_id: id, catalog_id: catalog }: JsonObject,
  where: string,
): string | null {
  return complaintAboutProductId(id, `${where}.product_retailer_id`) ?? complaintAboutCatalog(catalog, where);
}

export function complaintAboutProductId(value: Json | undefined, member: string): string | null {
  return value === undefined ? `${member} is required` : complaintAboutLine(value, PRODUCT_ID_CHARS_MAX, member);
}

/** Returns a sentence that says why the catalogue's id is invalid; null if it is valid or absent. */
export function complaintAboutCatalog(value: Json | undefined, where: string): string | null {
  if (value === undefined || (typeof value === "string" && CATALOG_ID.test(value))) return null;
  return `${where}.catalog_id must be the provider's id of a catalogue: digits`;
}

/** Reads a product from a checked request or a queued payload; null if the object is no product. */
export function readProduct({ product_retailer_id: id, catalog_id: catalog }: JsonObject): Product | null {
  if (typeof id !== "string") return null;
  return { product_retailer_id: id, ...(typeof catalog === "string" ? { catalog_id: catalog } : null) };
}

/** Products under titles, as a button or an interactive message lists them. */
export const ProductSections = Type.Array(
  Type.Object(
    {
      title: line(TITLE_CHARS_MAX),
      product_retailer_ids: Type.Array(ProductId, { minItems: 1, maxItems: PRODUCTS_MAX }),
    },
    { $id: "ChatProductSection", additionalProperties: false },
  ),
  { minItems: 1, maxItems: SECTIONS_MAX, description: `With at most ${PRODUCTS_MAX} products in all.` },
);

const SECTION_MEMBERS = ["title", "product_retailer_ids"];

/** Returns a sentence that says why the list `where` is invalid, or null. */
export function complaintAboutSections(value: Json | undefined, where: string): string | null {
  if (!isJsonArray(value) || value.length === 0 || value.length > SECTIONS_MAX) {
    return `${where} must be an array of 1 to ${SECTIONS_MAX} objects with title and product_retailer_ids`;
  }
  let products = 0;
  for (const [at, given] of value.entries()) {
    const [here, section] = [`${where}[${at}]`, isJsonObject(given) ? presentMembers(given) : null];
    if (section === null) return `${here} must be an object with title and product_retailer_ids`;
    const { title, product_retailer_ids: ids } = section;
    const complaint =
      complaintAboutMembers(section, SECTION_MEMBERS, "a section", `${here}.`) ??
      (title === undefined ? `${here}.title is required` : null) ??
      complaintAboutLine(title, TITLE_CHARS_MAX, `${here}.title`);
    if (complaint !== null) return complaint;
    if (!isJsonArray(ids) || ids.length === 0)
      return `${here}.product_retailer_ids must be an array of one id at least`;
    products += ids.length;
    if (products > PRODUCTS_MAX) return `${where} must not hold more than ${PRODUCTS_MAX} products in all`;
    for (const [i, id] of ids.entries()) {
      const wrong = complaintAboutProductId(id, `${here}.product_retailer_ids[${i}]`);
      if (wrong !== null) return wrong;
    }
  }
  return null;
}

/** Converts checked sections to the provider's form (WhatsApp Cloud API, "Multi-product messages"). */
export function graphSections(sections: Json | undefined): Json {
  return (isJsonArray(sections) ? sections : []).filter(isJsonObject).map(({ title, product_retailer_ids: ids }) => ({
    title: title ?? "",
    product_items: (isJsonArray(ids) ? ids : []).map((product_retailer_id) => ({ product_retailer_id })),
  }));
}
