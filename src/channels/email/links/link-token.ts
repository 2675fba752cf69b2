/** The token in the last part of a public link's path, with whatever ending it has there. */
export function linkToken(request: Request): string {
  const { url } = request;
  const end = url.search(/[?#]/);
  const path = end === -1 ? url : url.slice(0, end);
  return path.slice(path.lastIndexOf("/") + 1);
}
