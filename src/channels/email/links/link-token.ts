/** The token in the last path segment of a public link, without any file extension. */
export function linkToken(request: Request): string {
  const { url } = request;
  const end = url.search(/[?#]/);
  const path = end === -1 ? url : url.slice(0, end);
  return path.slice(path.lastIndexOf("/") + 1);
}
