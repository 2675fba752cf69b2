/** C0, DEL and C1. */
export const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

/** C0 except tab and line breaks, DEL and C1: not allowed in texts of several lines. */
export const CONTROL_IN_LINES = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

/** A text without control characters, as a pattern of a schema. */
export const NO_CONTROL_PATTERN = `^${CONTROL.source.replace("[", "[^")}*$`;

/** The same of a text of several lines. */
export const NO_CONTROL_IN_LINES_PATTERN = `^${CONTROL_IN_LINES.source.replace("[", "[^")}*$`;
