/**
 * The icon of passes that bring none (a card on the base background), by file name. Devices open no pass without an
 * icon.
 */
export const PLACEHOLDER_ICON: ReadonlyMap<string, Uint8Array> = new Map([
  [
    "icon.png",
    png(
      "iVBORw0KGgoAAAANSUhEUgAAAB0AAAAdAQMAAABsXfVMAAAABlBMVEULHzr///+yOHeIAAAAGklEQVR42mNgIBIw//+HnWD4/wOZwK2OOAAAVpEZ5kmz" +
        "EUcAAAAASUVORK5CYII=",
    ),
  ],
  [
    "icon@2x.png",
    png(
      "iVBORw0KGgoAAAANSUhEUgAAADoAAAA6AQMAAADbddhrAAAABlBMVEULHzr///+yOHeIAAAAPUlEQVR42mNgGGyA////+X/QGf8xGMSrYf7/f/4HEIPx////" +
        "D8B2/P///wCUMR+DAZGCK4Zrp5Z74IzBBQDY42HhRFfqRQAAAABJRU5ErkJggg==",
    ),
  ],
  [
    "icon@3x.png",
    png(
      "iVBORw0KGgoAAAANSUhEUgAAAFcAAABXAQMAAABLBksvAAAABlBMVEULHzr///+yOHeIAAAARklEQVR42mNgGAUEgP3////P//9BkP2fCDYtzWEHsw+A2cxg" +
        "9Q1gNiOYDfUMiPkPwT5PBBumHtkcZPOR7R3M4YPMHgV4AACAAuLjm03gkwAAAABJRU5ErkJggg==",
    ),
  ],
]);

function png(base64: string): Uint8Array {
  return new Uint8Array(Buffer.from(base64, "base64"));
}
