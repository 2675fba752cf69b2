/**
 * A tenant's label on a message, which its history is searched and summed by. Name and value have 1 to 256 characters of
 * `A-Z a-z 0-9 _ -`.
 */
export interface Tag {
  readonly name: string;
  readonly value: string;
}

/** `<name>=<value>;<name>=<value>`; "" for none. Neither names nor values have these characters. */
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
/** Of a tag's name, and of its value. */
export const TAG_WORD = /^[A-Za-z0-9_-]{1,256}$/;

/** `<name>:<value>`, as requests name it and the event store has it. */
export function tagText({ name, value }: Tag): string {
  return `${name}:${value}`;
}

export function parseTag(text: string): Tag {
  const [name = "", value = ""] = text.split(":");
  return { name, value };
}
