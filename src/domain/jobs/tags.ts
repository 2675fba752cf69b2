/**
 * A tenant's label on a message, by which its history can be searched and grouped. Name and value have 1 to 256
 * characters of `A-Z a-z 0-9 _ -`.
 */
export interface Tag {
  readonly name: string;
  readonly value: string;
}

/** Encodes tags as `<name>=<value>;<name>=<value>`; "" for none. Names and values cannot contain these separators. */
export function encodeTags(tags: readonly Tag[]): string {
  return tags.map(({ name, value }) => `${name}=${value}`).join(";");
}

export function decodeTags(text: string): readonly Tag[] {
  if (text === "") return [];
  return text.split(";").map((tag) => {
    const [name = "", value = ""] = tag.split("=");
    return { name, value };
  });
}

export const TAGS_MAX = 10;
/** A tag's name, or its value. */
export const TAG_WORD = /^[A-Za-z0-9_-]{1,256}$/;

/** Formats a tag as `<name>:<value>`, as in requests and in the event store. */
export function tagText({ name, value }: Tag): string {
  return `${name}:${value}`;
}

export function parseTag(text: string): Tag {
  const [name = "", value = ""] = text.split(":");
  return { name, value };
}
