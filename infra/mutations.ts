import ts from "typescript";

/** A small mistake in a source: the text from `start` to `end` becomes `after`. */
export interface Mutation {
  readonly file: string;
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly before: string;
  readonly after: string;
}

type Found = Pick<Mutation, "start" | "end" | "after">;

/** The operator that replaces each one. `+` stays where it may join texts. */
const OPERATORS: Readonly<Record<number, string>> = {
  [ts.SyntaxKind.LessThanToken]: "<=",
  [ts.SyntaxKind.LessThanEqualsToken]: "<",
  [ts.SyntaxKind.GreaterThanToken]: ">=",
  [ts.SyntaxKind.GreaterThanEqualsToken]: ">",
  [ts.SyntaxKind.EqualsEqualsEqualsToken]: "!==",
  [ts.SyntaxKind.ExclamationEqualsEqualsToken]: "===",
  [ts.SyntaxKind.AmpersandAmpersandToken]: "||",
  [ts.SyntaxKind.BarBarToken]: "&&",
  [ts.SyntaxKind.MinusToken]: "+",
  [ts.SyntaxKind.AsteriskToken]: "+",
};
const METHODS: Readonly<Record<string, string>> = { some: "every", every: "some", max: "min", min: "max" };
/** Calls without an effect that a test should check. */
const TELLS_ONLY = /telemetry|\.(log|count|gauge|time|info|warn|error|debug|note|unref)\(/;

/** Returns all mistakes that can be planted in this file. */
export function findMutations(file: string, text: string): readonly Mutation[] {
  const found = file.endsWith(".lua") ? inLua(text) : inTypeScript(file, text);
  return found.map((one) => ({
    ...one,
    file,
    line: text.slice(0, one.start).split("\n").length,
    before: text.slice(one.start, one.end),
  }));
}

/** Returns the text with the mistake planted. */
export function planted(text: string, { start, end, after }: Mutation): string {
  return text.slice(0, start) + after + text.slice(end);
}

function inTypeScript(file: string, text: string): Found[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext, true);
  const found: Found[] = [];
  const visit = (node: ts.Node): void => {
    if (isBesideTheProgram(node)) return;
    found.push(...ofNode(node, source));
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Returns whether the node is a type, an import or a text for people. */
function isBesideTheProgram(node: ts.Node): boolean {
  if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isInterfaceDeclaration(node)) return true;
  if (ts.isTypeAliasDeclaration(node) || ts.isThrowStatement(node)) return true;
  return ts.isExpressionStatement(node) && TELLS_ONLY.test(node.getText());
}

function ofNode(node: ts.Node, source: ts.SourceFile): Found[] {
  const at = (part: ts.Node, after: string): Found => ({ start: part.getStart(source), end: part.getEnd(), after });
  if (ts.isBinaryExpression(node)) {
    const after = OPERATORS[node.operatorToken.kind];
    return after === undefined ? [] : [at(node.operatorToken, after)];
  }
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken) {
    return [at(node, node.operand.getText(source))];
  }
  if (ts.isIfStatement(node)) return [at(node.expression, "false")];
  if (ts.isConditionalExpression(node)) {
    const { condition, whenTrue, whenFalse } = node;
    const turned = `${condition.getText(source)} ? ${whenFalse.getText(source)} : ${whenTrue.getText(source)}`;
    return [at(node, turned)];
  }
  if (ts.isExpressionStatement(node)) return ofStatement(node, at);
  if (ts.isNumericLiteral(node)) return [at(node, Number(node.text) === 0 ? "1" : `(3 * ${node.getText(source)})`)];
  if (node.kind === ts.SyntaxKind.TrueKeyword) return [at(node, "false")];
  if (node.kind === ts.SyntaxKind.FalseKeyword) return [at(node, "true")];
  if (ts.isPropertyAccessExpression(node) && ts.isCallExpression(node.parent)) {
    const after = Object.hasOwn(METHODS, node.name.text) ? METHODS[node.name.text] : undefined;
    if (after !== undefined) return [at(node.name, after)];
  }
  return [];
}

/** Plants a forgotten call, or a forgotten `await`. As the body of an `if`, an empty statement would not compile. */
function ofStatement(node: ts.ExpressionStatement, at: (part: ts.Node, after: string) => Found): Found[] {
  const { expression } = node;
  if (ts.isCallExpression(expression))
    return expression.expression.kind === ts.SyntaxKind.SuperKeyword ? [] : [at(node, "{}")];
  if (ts.isAwaitExpression(expression))
    return [at(node, "{}"), at(expression, `void ${expression.expression.getText()}`)];
  if (ts.isPostfixUnaryExpression(expression) || ts.isDeleteExpression(expression)) return [at(node, "{}")];
  const isChange =
    ts.isBinaryExpression(expression) && expression.operatorToken.kind >= ts.SyntaxKind.FirstCompoundAssignment;
  return isChange && expression.operatorToken.kind <= ts.SyntaxKind.LastCompoundAssignment ? [at(node, "{}")] : [];
}

const LUA_OPERATORS: Readonly<Record<string, string>> = {
  "==": "~=",
  "~=": "==",
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  and: "or",
  or: "and",
};

function inLua(text: string): Found[] {
  const found: Found[] = [];
  let at = 0;
  for (const line of text.split("\n")) {
    const code = line.split("--")[0] ?? "";
    for (const match of code.matchAll(/[^~=<>'"](==|~=|<=|>=|<|>)[^=<>'"]|\s(and|or)\s/g)) {
      const operator = match[1] ?? match[2] ?? "";
      const start = at + match.index + 1;
      found.push({ start, end: start + operator.length, after: LUA_OPERATORS[operator] ?? operator });
    }
    // A write that is forgotten.
    const write = /^\s*(redis\.call\(.*\)|[a-z_]+\(.*\))\s*$/.exec(code);
    if (write?.[1] !== undefined) {
      const start = at + code.indexOf(write[1]);
      found.push({ start, end: start + write[1].length, after: "" });
    }
    at += line.length + 1;
  }
  return found;
}
