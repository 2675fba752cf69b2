import { type TProperties, Type } from "@sinclair/typebox";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";
import { enumSchema, optional } from "../../http/schemas.ts";
import { complaintAboutMembers, presentMembers } from "../../http/sending/acceptance.ts";
import { isPlaceholder } from "./carried-pass.ts";
import { complaintAboutLink, linkSchema, toUri } from "./media.ts";
import { AnyObject, complaintAboutRaw } from "./raw.ts";
import type { HeaderType } from "./templates/header.ts";
import {
  CatalogId,
  complaintAboutCatalog,
  complaintAboutProductId,
  complaintAboutSections,
  graphSections,
  ProductId,
  ProductSections,
} from "./templates/products.ts";
import { complaintAboutLine, line } from "./templates/value-rules.ts";

/** A kind of interactive message: its members beside header, body and footer. */
export interface InteractiveKind {
  readonly headers: readonly HeaderType[];
  readonly needsHeader?: boolean;
  readonly needsBody: boolean;
  /** Default: 1,024. */
  readonly bodyCharsMax?: number;
  /** Schemas of its own members. */
  readonly members: TProperties;
  /** Returns a sentence that says why those members of `where` are invalid, or null. */
  complaint(given: JsonObject, where: string): string | null;
  /** Converts the members to the provider's form. */
  action(given: JsonObject): JsonObject;
}

const LABEL_CHARS_MAX = 20;
const BUTTONS_MAX = 3;
const BUTTON_ID_CHARS_MAX = 256;
const ROWS_MAX = 10;
const ROW_ID_CHARS_MAX = 200;
const ROW_TITLE_CHARS_MAX = 24;
const ROW_TEXT_CHARS_MAX = 72;
const FLOW_LABEL_CHARS_MAX = 30;
const FLOW_TEXT_CHARS_MAX = 512;

const MEDIA: readonly HeaderType[] = ["text", "image", "video", "document"];

const replyButtons: InteractiveKind = {
  headers: MEDIA,
  needsBody: true,
  members: {
    buttons: Type.Array(
      Type.Object(
        {
          id: line(BUTTON_ID_CHARS_MAX, "The value returned when it is pressed, unique among the buttons."),
          title: line(LABEL_CHARS_MAX),
        },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: BUTTONS_MAX },
    ),
  },
  complaint: ({ buttons }, where) => {
    if (!isBoundedList(buttons, BUTTONS_MAX)) return `${where}.buttons must be an array of 1 to ${BUTTONS_MAX} objects`;
    return complaintAboutChoices(buttons, `${where}.buttons`, { id: BUTTON_ID_CHARS_MAX, title: LABEL_CHARS_MAX });
  },
  action: ({ buttons }) => ({ buttons: objectsIn(buttons).map((reply) => ({ type: "reply", reply })) }),
};

const list: InteractiveKind = {
  headers: ["text"],
  needsBody: true,
  bodyCharsMax: 4_096,
  members: {
    button: line(LABEL_CHARS_MAX, "The label of the button that opens the list."),
    sections: Type.Array(
      Type.Object(
        {
          title: optional(line(ROW_TITLE_CHARS_MAX, "Needed where there are several sections.")),
          rows: Type.Array(
            Type.Object(
              {
                id: line(ROW_ID_CHARS_MAX, "The value returned when it is chosen, unique in the list."),
                title: line(ROW_TITLE_CHARS_MAX),
                description: optional(line(ROW_TEXT_CHARS_MAX)),
              },
              { additionalProperties: false },
            ),
            { minItems: 1, maxItems: ROWS_MAX },
          ),
        },
        { $id: "ChatListSection", additionalProperties: false },
      ),
      { minItems: 1, maxItems: ROWS_MAX, description: `With at most ${ROWS_MAX} rows in all.` },
    ),
  },
  complaint: ({ button, sections }, where) =>
    required(button, `${where}.button`) ??
    complaintAboutLine(button, LABEL_CHARS_MAX, `${where}.button`) ??
    complaintAboutRows(sections, `${where}.sections`),
  action: ({ button = "", sections }) => ({
    button,
    sections: objectsIn(sections).map(({ title, rows }) => ({
      ...(title === undefined ? null : { title }),
      rows: objectsIn(rows),
    })),
  }),
};

const link: InteractiveKind = {
  headers: MEDIA,
  needsBody: true,
  members: {
    display_text: line(LABEL_CHARS_MAX, "The button's label."),
    url: linkSchema("The https address that it opens; in a message with a `pass`, also the pass's link."),
  },
  complaint: ({ display_text: label, url }, where) => {
    const complaint =
      required(label, `${where}.display_text`) ??
      complaintAboutLine(label, LABEL_CHARS_MAX, `${where}.display_text`) ??
      required(url, `${where}.url`);
    if (complaint !== null || url === undefined || isPlaceholder(url)) return complaint;
    const wrong = complaintAboutLink(url);
    return wrong === null ? null : `${where}.url ${wrong}`;
  },
  action: ({ display_text = "", url = "" }) => ({
    name: "cta_url",
    parameters: { display_text, url: isPlaceholder(url) ? url : toUri(String(url)) },
  }),
};

const FLOW_ACTIONS = ["navigate", "data_exchange"] as const;
const FLOW_MODES = ["published", "draft"] as const;
/** The only version that the provider accepts. */
const FLOW_VERSION = "3";

const flow: InteractiveKind = {
  headers: MEDIA,
  needsBody: true,
  members: {
    flow_id: line(FLOW_TEXT_CHARS_MAX, "The provider's id of the flow."),
    flow_cta: line(FLOW_LABEL_CHARS_MAX, "The button's label."),
    flow_token: optional(line(FLOW_TEXT_CHARS_MAX, "Comes back with the answers.")),
    flow_action: optional(enumSchema(FLOW_ACTIONS)),
    screen: optional(line(FLOW_TEXT_CHARS_MAX, "The screen that it begins with.")),
    data: optional(AnyObject("The data of that screen: up to 16 KiB.")),
    mode: optional(enumSchema(FLOW_MODES)),
  },
  complaint: ({ flow_id: id, flow_cta: label, flow_token, flow_action, screen, data, mode }, where) => {
    if (flow_action !== undefined && !FLOW_ACTIONS.some((known) => known === flow_action)) {
      return `${where}.flow_action must be one of ${FLOW_ACTIONS.join(", ")}`;
    }
    if (mode !== undefined && !FLOW_MODES.some((known) => known === mode)) {
      return `${where}.mode must be one of ${FLOW_MODES.join(", ")}`;
    }
    if (data !== undefined && !isJsonObject(data)) return `${where}.data must be an object`;
    return (
      required(id, `${where}.flow_id`) ??
      complaintAboutLine(id, FLOW_TEXT_CHARS_MAX, `${where}.flow_id`) ??
      required(label, `${where}.flow_cta`) ??
      complaintAboutLine(label, FLOW_LABEL_CHARS_MAX, `${where}.flow_cta`) ??
      complaintAboutLine(flow_token, FLOW_TEXT_CHARS_MAX, `${where}.flow_token`) ??
      complaintAboutLine(screen, FLOW_TEXT_CHARS_MAX, `${where}.screen`) ??
      (data === undefined ? null : complaintAboutRaw(data, `${where}.data`))
    );
  },
  action: ({ screen, data, ...given }) => {
    const named = ["flow_id", "flow_cta", "flow_token", "flow_action", "mode"] as const;
    const parameters = named.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]] as const]));
    const payload = { ...(screen === undefined ? null : { screen }), ...(data === undefined ? null : { data }) };
    return {
      name: "flow",
      parameters: {
        flow_message_version: FLOW_VERSION,
        ...Object.fromEntries(parameters),
        ...(Object.keys(payload).length > 0 && { flow_action_payload: payload }),
      },
    };
  },
};

const locationRequest: InteractiveKind = {
  headers: [],
  needsBody: true,
  members: {},
  complaint: () => null,
  action: () => ({ name: "send_location" }),
};

const product: InteractiveKind = {
  headers: [],
  needsBody: false,
  members: { catalog_id: CatalogId, product_retailer_id: ProductId },
  complaint: ({ catalog_id: catalog, product_retailer_id: id }, where) =>
    required(catalog, `${where}.catalog_id`) ??
    complaintAboutCatalog(catalog, where) ??
    complaintAboutProductId(id, `${where}.product_retailer_id`),
  action: ({ catalog_id = "", product_retailer_id = "" }) => ({ catalog_id, product_retailer_id }),
};

const productList: InteractiveKind = {
  headers: ["text"],
  needsHeader: true,
  needsBody: true,
  members: { catalog_id: CatalogId, sections: ProductSections },
  complaint: ({ catalog_id: catalog, sections }, where) =>
    required(catalog, `${where}.catalog_id`) ??
    complaintAboutCatalog(catalog, where) ??
    complaintAboutSections(sections, `${where}.sections`),
  action: ({ catalog_id = "", sections }) => ({ catalog_id, sections: graphSections(sections) }),
};

const catalogue: InteractiveKind = {
  headers: [],
  needsBody: true,
  members: {
    product_retailer_id: optional({
      ...ProductId,
      description: "The product whose picture is shown; by default the first.",
    }),
  },
  complaint: ({ product_retailer_id: id }, where) =>
    id === undefined ? null : complaintAboutProductId(id, `${where}.product_retailer_id`),
  action: ({ product_retailer_id: id }) => ({
    name: "catalog_message",
    ...(id === undefined ? null : { parameters: { thumbnail_product_retailer_id: id } }),
  }),
};

/** By the provider's name of the type. */
export const INTERACTIVE_KINDS: Readonly<Record<string, InteractiveKind>> = {
  button: replyButtons,
  list,
  cta_url: link,
  flow,
  location_request_message: locationRequest,
  product,
  product_list: productList,
  catalog_message: catalogue,
};

function complaintAboutRows(sections: Json | undefined, where: string): string | null {
  if (!isBoundedList(sections, ROWS_MAX)) return `${where} must be an array of 1 to ${ROWS_MAX} objects with rows`;
  const rows: JsonObject[] = [];
  for (const [at, given] of sections.entries()) {
    const here = `${where}[${at}]`;
    const section = presentMembers(given);
    const { title } = section;
    const complaint =
      complaintAboutMembers(section, ["title", "rows"], "a section", `${here}.`) ??
      (sections.length > 1 ? required(title, `${here}.title`) : null) ??
      complaintAboutLine(title, ROW_TITLE_CHARS_MAX, `${here}.title`);
    if (complaint !== null) return complaint;
    if (!isBoundedList(section["rows"], ROWS_MAX)) return `${here}.rows must be an array of 1 to ${ROWS_MAX} objects`;
    rows.push(...section["rows"]);
    if (rows.length > ROWS_MAX) return `${where} must not hold more than ${ROWS_MAX} rows in all`;
    const bounds = { id: ROW_ID_CHARS_MAX, title: ROW_TITLE_CHARS_MAX, description: ROW_TEXT_CHARS_MAX };
    const wrong = complaintAboutChoices(section["rows"], `${here}.rows`, bounds);
    if (wrong !== null) return wrong;
  }
  const ids = rows.map(({ id }) => id);
  return new Set(ids).size < ids.length ? `${where} has two rows with the same id` : null;
}

/** Checks buttons, or rows of a list. */
function complaintAboutChoices(
  choices: readonly JsonObject[],
  where: string,
  bounds: Readonly<Record<string, number>>,
): string | null {
  const seen = new Set<unknown>();
  for (const [at, given] of choices.entries()) {
    const [here, choice] = [`${where}[${at}]`, presentMembers(given)];
    const { id, title } = choice;
    const complaint =
      complaintAboutMembers(choice, Object.keys(bounds), "it", `${here}.`) ??
      required(id, `${here}.id`) ??
      required(title, `${here}.title`);
    if (complaint !== null) return complaint;
    for (const [name, charsMax] of Object.entries(bounds)) {
      const wrong = complaintAboutLine(choice[name], charsMax, `${here}.${name}`);
      if (wrong !== null) return wrong;
    }
    if (seen.has(id)) return `${here}.id is another one's`;
    seen.add(id);
  }
  return null;
}

function required(value: Json | undefined, member: string): string | null {
  return value === undefined ? `${member} is required` : null;
}

function isBoundedList(value: Json | undefined, max: number): value is readonly JsonObject[] {
  return isJsonArray(value) && value.length > 0 && value.length <= max && value.every(isJsonObject);
}

function objectsIn(value: Json | undefined): readonly JsonObject[] {
  return (isJsonArray(value) ? value : []).filter(isJsonObject).map(presentMembers);
}
