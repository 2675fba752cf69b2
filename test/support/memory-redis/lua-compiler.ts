import { Script } from "node:vm";
import { LIBRARY, OPERATIONS } from "./lua-library.ts";
import type { LuaFunction, LuaResult, LuaValue } from "./lua-values.ts";

/** A compiled script, called with its globals beside Lua's library. */
export type Chunk = (globals: LuaGlobals) => LuaResult;
export type LuaGlobals = Readonly<Record<string, LuaValue | Readonly<Record<string, LuaFunction>>>>;

/**
 * Compiles Lua 5.1 to JavaScript. Left out is what the scripts do not use, and is refused: metatables, coroutines, goto, long
 * strings, methods of tables, global variables and functions.
 */
export function compile(source: string): Chunk {
  const code = new Compiler(source).chunk();
  const names = Object.keys(OPERATIONS).join(", ");
  const make = new Script(`"use strict"; (({ ${names} }, L) => ${code})`).runInThisContext() as (
    operations: typeof OPERATIONS,
    library: typeof LIBRARY,
  ) => Chunk;
  return make(OPERATIONS, LIBRARY);
}

interface Expression {
  /** A single value. */
  readonly code: string;
  /** All its values: an array, or one that is none. Absent: it has one. */
  readonly many?: string;
  /** Whether it is true; absent: its value tells. */
  readonly condition?: string;
  /** Assigns to it; absent: it is no variable. */
  readonly assign?: (value: string) => string;
  /** The table and the key that it is. */
  readonly place?: readonly [table: string, key: string];
}

interface Operator {
  readonly level: number;
  readonly isRightFirst?: true;
  make(left: string, right: string): string;
}

function arithmetic(level: number, operation: string): Operator {
  return { level, make: (left, right) => `${operation}(${left}, ${right})` };
}

const OPERATORS: Readonly<Record<string, Operator>> = {
  "==": { level: 3, make: (left, right) => `(${left} === ${right})` },
  "~=": { level: 3, make: (left, right) => `(${left} !== ${right})` },
  "<": { level: 3, make: (left, right) => `isLess(${left}, ${right})` },
  ">": { level: 3, make: (left, right) => `isLess(${right}, ${left})` },
  "<=": { level: 3, make: (left, right) => `isAtMost(${left}, ${right})` },
  ">=": { level: 3, make: (left, right) => `isAtMost(${right}, ${left})` },
  "..": { ...arithmetic(4, "concat"), isRightFirst: true },
  "+": arithmetic(5, "add"),
  "-": arithmetic(5, "subtract"),
  "*": arithmetic(6, "multiply"),
  "/": arithmetic(6, "divide"),
  "%": arithmetic(6, "modulo"),
};
const UNARY_LEVEL = 7;

const TOKEN =
  /(?:\s|--.*)*(?:([A-Za-z_]\w*)|(\d+\.?\d*(?:[eE][+-]?\d+)?)|("(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*')|(\.\.\.?|[=~<>]=|[-+*/%#<>=(){}[\];:,.])|$)/y;

/** Reads Lua and writes JavaScript in one go. */
class Compiler {
  /** `'` begins a string's value; the last one is empty. */
  private readonly tokens: readonly string[];
  private at = 0;
  /** The JavaScript name of each local in sight, the innermost block last. */
  private readonly scopes: Map<string, string>[] = [];
  private named = 0;
  /** Names that the function being written declares at its head. */
  private temporaries: string[] = [];

  constructor(source: string) {
    this.tokens = splitTokens(source);
  }

  chunk(): string {
    return `(G) => ${this.functionBody([])}`;
  }

  private get token(): string {
    return this.tokens[this.at] ?? "";
  }

  private take(): string {
    this.at += 1;
    return this.tokens[this.at - 1] ?? "";
  }

  private takes(token: string): boolean {
    if (this.token !== token) return false;
    this.at += 1;
    return true;
  }

  private expect(token: string): void {
    if (!this.takes(token)) {
      const around = this.tokens.slice(Math.max(0, this.at - 8), this.at + 4).join(" ");
      throw new SyntaxError(`"${token}" expected instead of "${this.token}": ${around}`);
    }
  }

  private fresh(name: string): string {
    this.named += 1;
    return `${name}_${this.named}`;
  }

  private temporary(): string {
    const name = this.fresh("t");
    this.temporaries.push(name);
    return name;
  }

  private declare(name: string): string {
    const own = this.fresh(name);
    this.scopes.at(-1)?.set(name, own);
    return own;
  }

  private within<T>(run: () => T): T {
    this.scopes.push(new Map());
    const result = run();
    this.scopes.pop();
    return result;
  }

  /** Up to its `end`, which it takes. */
  private functionBody(parameters: readonly string[]): string {
    const outer = this.temporaries;
    this.temporaries = [];
    const [names, body] = this.within(() => [parameters.map((name) => this.declare(name)), this.statements()] as const);
    const declared = this.temporaries.length === 0 ? "" : `let ${this.temporaries.join(", ")};`;
    this.temporaries = outer;
    this.expect(this.scopes.length === 0 ? "" : "end");
    return parameters.length === 0 && this.scopes.length === 0
      ? `{ ${declared} ${body} return []; }`
      : `((${names.join(", ")}) => { ${declared} ${body} return []; })`;
  }

  private lambda(): string {
    this.expect("(");
    const parameters: string[] = [];
    while (!this.takes(")")) {
      parameters.push(this.take());
      this.takes(",");
    }
    return this.functionBody(parameters);
  }

  private block(): string {
    return this.within(() => `{ ${this.statements()} }`);
  }

  private statements(): string {
    let code = "";
    while (!["", "end", "else", "elseif", "until"].includes(this.token)) {
      code += `${this.statement()}\n`;
      this.takes(";");
    }
    return code;
  }

  private statement(): string {
    const word = this.token;
    if (!STATEMENTS.has(word)) return this.assignmentOrCall();
    this.at += 1;
    switch (word) {
      case "local":
        return this.takes("function") ? `const ${this.declare(this.take())} = ${this.lambda()};` : this.local();
      case "if":
        return this.branches();
      case "do":
        return this.ended(this.block());
      case "while": {
        const condition = this.condition(this.expression());
        this.expect("do");
        return this.ended(`while (${condition}) ${this.block()}`);
      }
      case "for":
        return this.within(() => this.ended(this.loop()));
      case "break":
        return "break;";
      default:
        return `return ${this.returned()};`;
    }
  }

  private ended(code: string): string {
    this.expect("end");
    return code;
  }

  private local(): string {
    const names = [this.take()];
    while (this.takes(",")) names.push(this.take());
    const values = this.takes("=") ? this.spreadTo(this.expressions(), names.length) : [];
    const own = names.map((name) => this.declare(name));
    if (typeof values === "string") return `let [${own.join(", ")}] = ${values};`;
    return `let ${own.map((name, i) => `${name} = ${values[i] ?? "undefined"}`).join(", ")};`;
  }

  private branches(): string {
    let code = `if (${this.condition(this.expression())})`;
    this.expect("then");
    code += this.block();
    if (this.takes("elseif")) return `${code} else ${this.branches()}`;
    return this.ended(this.takes("else") ? `${code} else ${this.block()}` : code);
  }

  private loop(): string {
    const names = [this.take()];
    while (this.takes(",")) names.push(this.take());
    if (this.takes("=")) {
      const [from, to, by] = this.expressions().map(({ code }) => code);
      const [name, end, step] = [this.declare(names[0] ?? ""), this.fresh("end"), this.fresh("step")];
      this.expect("do");
      const begin = `let ${name} = number(${from}), ${end} = number(${to}), ${step} = number(${by ?? 1})`;
      return `for (${begin}; ${step} > 0 ? ${name} <= ${end} : ${name} >= ${end}; ${name} += ${step}) ${this.block()}`;
    }
    this.expect("in");
    const iterator = this.expression().code;
    this.expect("do");
    const next = this.fresh("next");
    const own = names.map((name) => this.declare(name));
    const step = `let [${own.join(", ")}] = all(${next}()); if (${own[0]} === undefined) break;`;
    return `{ const ${next} = ${iterator}; while (true) { ${step} ${this.block()} } }`;
  }

  private returned(): string {
    if (["", "end", "else", "elseif", "until", ";"].includes(this.token)) return "[]";
    const values = this.expressions();
    const [only] = values;
    return values.length === 1 && only !== undefined ? (only.many ?? only.code) : `[${joined(values)}]`;
  }

  private assignmentOrCall(): string {
    const targets = [this.suffixed()];
    if (targets[0]?.many !== undefined && this.token !== "=" && this.token !== ",") return `${targets[0].many};`;
    while (this.takes(",")) targets.push(this.suffixed());
    this.expect("=");
    const values = this.spreadTo(this.expressions(), targets.length);
    const to = targets.map(({ assign, code }) => assign ?? refuse(`${code} is assigned to`));
    const [target] = to;
    if (to.length === 1 && target !== undefined && typeof values !== "string") return target(values[0] ?? "undefined");
    const taken = to.map(() => this.fresh("v"));
    const all = typeof values === "string" ? values : `[${values.join(", ")}]`;
    // Where something goes is known before anything changes.
    let before = "";
    const assigned = targets.map(({ place }, i) => {
      if (place === undefined) return to[i]?.(taken[i] ?? "");
      const [table, key] = [this.fresh("table"), this.fresh("key")];
      before += `const ${table} = ${place[0]}, ${key} = ${place[1]};`;
      return `set(${table}, ${key}, ${taken[i]});`;
    });
    return `{ ${before} const [${taken.join(", ")}] = ${all}; ${assigned.join(" ")} }`;
  }

  /** A value for each of so many variables, or the code of an array of them. */
  private spreadTo(values: readonly Expression[], wanted: number): string | string[] {
    if (values.length < wanted && values.at(-1)?.many !== undefined) return `[${joined(values)}]`;
    return values.map(({ code }) => code);
  }

  private expressions(): Expression[] {
    const list = [this.expression()];
    while (this.takes(",")) list.push(this.expression());
    return list;
  }

  private condition({ code, condition }: Expression): string {
    if (condition !== undefined) return condition;
    const value = this.temporary();
    return `((${value} = ${code}) !== undefined && ${value} !== false)`;
  }

  private expression(): Expression {
    let left = this.conjunction();
    while (this.takes("or")) left = this.logical("||", left, this.conjunction());
    return left;
  }

  private conjunction(): Expression {
    let left = this.operation(0);
    while (this.takes("and")) left = this.logical("&&", left, this.operation(0));
    return left;
  }

  private logical(sign: "&&" | "||", left: Expression, right: Expression): Expression {
    const condition = `(${this.condition(left)} ${sign} ${this.condition(right)})`;
    // A comparison is true or false by itself.
    const isPlain = left.condition === left.code;
    return { code: isPlain ? `(${left.code} ${sign} ${right.code})` : this.chosen(sign, left, right), condition };
  }

  private chosen(sign: "&&" | "||", left: Expression, right: Expression): string {
    const value = this.temporary();
    const isFalse = `((${value} = ${left.code}) === undefined || ${value} === false)`;
    return sign === "&&" ? `(${isFalse} ? ${value} : ${right.code})` : `(${isFalse} ? ${right.code} : ${value})`;
  }

  /** Operators above the level. */
  private operation(level: number): Expression {
    let left = this.unary();
    for (
      let operator = OPERATORS[this.token];
      operator !== undefined && operator.level > level;
      operator = OPERATORS[this.token]
    ) {
      this.at += 1;
      const right = this.operation(operator.isRightFirst ? operator.level - 1 : operator.level);
      const code = operator.make(left.code, right.code);
      left = operator.level === 3 ? { code, condition: code } : { code };
    }
    return left;
  }

  private unary(): Expression {
    if (this.takes("not")) {
      const code = `!${this.condition(this.operation(UNARY_LEVEL))}`;
      return { code, condition: code };
    }
    if (this.takes("#")) return { code: `length(${this.operation(UNARY_LEVEL).code})` };
    if (this.takes("-")) return { code: `negate(${this.operation(UNARY_LEVEL).code})` };
    return this.simple();
  }

  private simple(): Expression {
    const { token } = this;
    if (token.startsWith("'")) return this.taken(JSON.stringify(token.slice(1)));
    if (/^\d/.test(token)) return this.taken(String(Number(token)));
    switch (token) {
      case "nil":
        return this.taken("undefined");
      case "true":
      case "false":
        return { ...this.taken(token), condition: token };
      case "function":
        this.at += 1;
        return { code: this.lambda() };
      case "{":
        return this.table();
      default:
        return this.suffixed();
    }
  }

  private taken(code: string): Expression {
    this.at += 1;
    return { code };
  }

  /** A name or an expression in brackets, with what is indexed and called behind it. */
  private suffixed(): Expression {
    let left: Expression;
    if (this.takes("(")) {
      const { code } = this.expression();
      left = { code };
      this.expect(")");
    } else left = this.variable(this.take());
    while (true) {
      if (this.takes(".")) left = this.member(left, JSON.stringify(this.take()));
      else if (this.takes("[")) {
        left = this.member(left, this.expression().code);
        this.expect("]");
      } else if (this.takes(":")) {
        const self = this.temporary();
        const method = `indexed(${self} = ${left.code}, ${JSON.stringify(this.take())})`;
        left = called(method, [{ code: self }, ...this.given()]);
      } else if (this.token === "(") left = called(left.code, this.given());
      else return left;
    }
  }

  private variable(name: string): Expression {
    const local = this.scopes.findLast((scope) => scope.has(name))?.get(name);
    if (local !== undefined) return { code: local, assign: (value) => `${local} = ${value};` };
    if (!/^[A-Za-z]\w*$/.test(name)) refuse(`"${name}" is no variable`);
    return { code: name in LIBRARY ? `L.${name}` : `G.${name}` };
  }

  private member({ code, assign: isVariable }: Expression, key: string): Expression {
    // A library's functions are called straight.
    if (isVariable === undefined && /^[LG]\.\w+$/.test(code) && key.startsWith('"')) return { code: `${code}[${key}]` };
    const assign = (value: string) => `set(${code}, ${key}, ${value});`;
    return { code: `indexed(${code}, ${key})`, assign, place: [code, key] };
  }

  private given(): Expression[] {
    this.expect("(");
    if (this.takes(")")) return [];
    const list = this.expressions();
    this.expect(")");
    return list;
  }

  private table(): Expression {
    this.expect("{");
    const list: Expression[] = [];
    const fields: string[] = [];
    while (!this.takes("}")) {
      if (this.takes("[")) {
        const key = this.expression().code;
        this.expect("]");
        this.expect("=");
        fields.push(`[${key}, ${this.expression().code}]`);
      } else if (this.tokens[this.at + 1] === "=") {
        const key = JSON.stringify(this.take());
        this.expect("=");
        fields.push(`[${key}, ${this.expression().code}]`);
      } else list.push(this.expression());
      if (!this.takes(",")) this.takes(";");
    }
    return { code: `table([${joined(list)}], [${fields.join(", ")}])` };
  }
}

const STATEMENTS: ReadonlySet<string> = new Set(["local", "if", "do", "while", "for", "break", "return"]);

function refuse(why: string): never {
  throw new SyntaxError(why);
}

function called(code: string, given: readonly Expression[]): Expression {
  const many = `${code}(${joined(given)})`;
  return { code: `first(${many})`, many };
}

/** One after the other, the last one with all its values. */
function joined(values: readonly Expression[]): string {
  return values
    .map(({ code, many }, i) => (i === values.length - 1 && many !== undefined ? `...all(${many})` : code))
    .join(", ");
}

function splitTokens(source: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < source.length) {
    const at = TOKEN.lastIndex;
    const [, name, number, string, sign] = TOKEN.exec(source) ?? refuse(`unreadable: ${source.slice(at, at + 40)}`);
    tokens.push(name ?? number ?? (string === undefined ? sign : `'${unescaped(string)}`) ?? "");
  }
  return tokens;
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", v: "\v", a: "\x07" };

function unescaped(literal: string): string {
  return literal
    .slice(1, -1)
    .replace(/\\(\d{1,3}|[^])/g, (_, code: string) =>
      /^\d/.test(code) ? String.fromCharCode(Number(code)) : (ESCAPES[code] ?? code),
    );
}
