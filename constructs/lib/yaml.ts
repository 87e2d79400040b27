/**
 * YAML as the API server reads and writes it: version 1.1 without timestamps and base-60 numbers, every duplicate key,
 * anchor bomb, merge key and unsafe number refused; strings that another reader could take for something else are quoted.
 */
import {
  Document,
  isCollection,
  isMap,
  isNode,
  isScalar,
  LineCounter,
  parseAllDocuments,
  type ScalarTag,
  type Tags,
  visit,
} from 'yaml';
import { isObject, type JsonObject, type JsonValue } from './json.ts';
import type { Problem } from './problems.ts';

export interface Position {
  /** Counted from 1. */
  readonly line: number;
  /** Counted from 1. */
  readonly column: number;
}

export interface YamlDocument {
  readonly value: JsonValue;
  /** Index among the non-empty documents of the file. */
  readonly index: number;
  /** Line on which the document's content begins. */
  readonly line: number;
  /** Where the value at `path` stands; the nearest enclosing value when it does not exist. */
  locate(path: readonly (string | number)[]): Position;
}

/** Larger inputs are refused before they are parsed. */
const maxBytes = 8 * 1024 * 1024;

/** Far beyond any object, and far below what would exhaust the stack of whoever walks the value later. */
const maxDepth = 200;
const tooDeep = `it is nested deeper than ${maxDepth} levels`;

/** A number needs a digit; the 1.1 reader takes a lone full stop for one. */
const withDigit = /^[-+]?(?:\.[0-9_]*[0-9][0-9_]*|[0-9][0-9_]*\.[0-9_]*)$/;

const kubernetesTags = (tags: Tags): Tags =>
  tags
    .filter(
      (tag) =>
        typeof tag === 'string' ||
        (tag.tag !== 'tag:yaml.org,2002:timestamp' && tag.tag !== 'tag:yaml.org,2002:binary' && tag.format !== 'TIME'),
    )
    .map((tag) =>
      typeof tag !== 'string' && tag.test?.test('.') === true ? { ...(tag as ScalarTag), test: withDigit } : tag,
    );

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let deepest = 0;
  for (const member of Object.values(value)) deepest = Math.max(deepest, depthOf(member));
  return deepest + 1;
}

function unsafeNumbers(value: unknown, path: string[], report: (path: string[], message: string) => void): void {
  if (typeof value === 'bigint') report(path, 'the integer is beyond 2^53-1');
  else if (typeof value === 'number') {
    if (!Number.isFinite(value)) report(path, 'the number is not finite');
    else if (Number.isInteger(value) && !Number.isSafeInteger(value)) report(path, 'the integer is beyond 2^53-1');
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) unsafeNumbers(item, [...path, String(index)], report);
  } else if (isObject(value)) {
    for (const [key, member] of Object.entries(value)) unsafeNumbers(member, [...path, key], report);
  }
}

function locator(document: Document.Parsed, counter: LineCounter): YamlDocument['locate'] {
  return (path) => {
    let offset = document.contents?.range?.[0] ?? document.range[0];
    for (let depth = 1; depth <= path.length; depth++) {
      const parent = depth === 1 ? document.contents : document.getIn(path.slice(0, depth - 1), true);
      const token = path[depth - 1];
      const pair = isMap(parent) ? parent.items.find((item) => String(item.key) === String(token)) : undefined;
      const node = pair?.key ?? document.getIn(path.slice(0, depth), true);
      if (!isNode(node) || !node.range) break;
      offset = node.range[0];
    }
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
}

/**
 * What the parser says about a place, without what stands there: a line that is no YAML may be a secret. The place is
 * told apart from the message.
 */
const withoutContent = (message: string): string =>
  (message.split('\n')[0] ?? '')
    .replace('Maximum call stack size exceeded', tooDeep)
    .replace(/ at line [0-9]+, column [0-9]+:?$/, '')
    .replace(/ \(the anchor must be set before the alias\)/, '')
    .replace(/: .*$/, '')
    .replace(/ %.*$/, '')
    .replace(/(escape sequence) .*$/, '$1');

/** The 1.1 reader turns `<<` into a symbol of its own; a written key is the plain text. */
function isMergeKey(key: unknown): boolean {
  return isScalar(key) ? key.source === '<<' || key.value === '<<' : key === '<<';
}

function readDocument(
  document: Document.Parsed,
  counter: LineCounter,
  file: string,
): { value?: JsonValue; problems: Problem[] } {
  const problems: Problem[] = [];
  for (const error of [...document.errors, ...document.warnings]) {
    const { line, col } = counter.linePos(error.pos[0]);
    problems.push({
      reason: error.code === 'DUPLICATE_KEY' ? 'DuplicateKey' : 'InvalidYAML',
      message: withoutContent(error.message) || error.code,
      file,
      line,
      column: col,
      remedy: error.code === 'DUPLICATE_KEY' ? 'keep one of the two keys' : 'correct the YAML at this place',
    });
  }
  if (problems.length > 0) return { problems };
  const at = (path: string[], reason: string, message: string, remedy: string): void => {
    const { line, column } = locator(document, counter)(path);
    problems.push({ reason, message, file, line, column, path: path.join('.'), remedy });
  };
  visit(document, {
    Pair(_, pair) {
      if (isCollection(pair.key)) at([], 'InvalidYAML', 'a key is a map or a list', 'write a plain key');
      if (isMergeKey(pair.key)) at([], 'InvalidYAML', 'a merge key (<<) is not supported', 'write the merged keys out');
    },
  });
  if (problems.length > 0) return { problems };
  let value: JsonValue;
  try {
    value = document.toJS({ maxAliasCount: 100 }) as JsonValue;
  } catch (error) {
    const message = withoutContent((error as Error).message);
    at([], 'InvalidYAML', message, message === tooDeep ? 'make it flatter' : 'correct the aliases of this document');
    return { problems };
  }
  if (depthOf(value) > maxDepth) {
    at([], 'InvalidYAML', tooDeep, 'make it flatter');
    return { problems };
  }
  unsafeNumbers(value, [], (path, message) => at(path, 'InvalidNumber', message, 'write it as a string'));
  return problems.length > 0 ? { problems } : { value, problems };
}

/** The items of `kind: List` stand for themselves. */
function expandList(value: JsonValue): { item: JsonValue; path: (string | number)[] }[] {
  if (!isObject(value) || value.kind !== 'List' || value.apiVersion !== 'v1') return [{ item: value, path: [] }];
  const items = value.items;
  return Array.isArray(items) ? items.map((item, index) => ({ item, path: ['items', index] })) : [];
}

/**
 * All documents of a file. Nothing is returned half-read: a document with a problem is left out and every problem is told.
 * `file` is the name that the problems carry.
 */
export function parseYaml(text: string, file: string): { documents: YamlDocument[]; problems: Problem[] } {
  if (Buffer.byteLength(text) > maxBytes)
    return {
      documents: [],
      problems: [{ reason: 'InputTooLarge', message: `the file is over ${maxBytes} bytes`, file, remedy: 'split it' }],
    };
  const counter = new LineCounter();
  const parsed = parseAllDocuments(text, {
    version: '1.1',
    uniqueKeys: true,
    customTags: kubernetesTags,
    lineCounter: counter,
    stringKeys: false,
  });
  const documents: YamlDocument[] = [];
  const problems: Problem[] = [];
  const streams = Array.isArray(parsed) ? parsed : [];
  for (const document of streams) {
    const read = readDocument(document, counter, file);
    problems.push(...read.problems);
    if (read.value === undefined || read.value === null) continue;
    const locate = locator(document, counter);
    for (const { item, path } of expandList(read.value)) {
      documents.push({
        value: item,
        index: documents.length,
        line: locate(path).line,
        locate: (inner) => locate([...path, ...inner]),
      });
    }
  }
  return { documents, problems };
}

/** Octal of YAML 1.2 and blank strings: the two forms that a 1.1 writer leaves plain and another reader takes otherwise. */
const needsQuotes = /^\s*$|^[-+]?0[oO][0-7]+$/;

/**
 * YAML that the API server, Flux, Argo CD and this module read back to the same value. Members keep their order.
 * @throws TypeError for a map key `<<`, which no reader agrees on.
 */
export function dumpYaml(value: JsonValue | JsonObject): string {
  const document = new Document(value, { version: '1.1', aliasDuplicateObjects: false });
  visit(document, {
    Pair(_, pair) {
      if (isMergeKey(pair.key)) throw new TypeError("a map key '<<' cannot be written as YAML");
    },
    Scalar(_, node) {
      if (typeof node.value === 'string' && needsQuotes.test(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0, directives: false });
}

/** Several documents, each after its own `---`. */
export function dumpYamlDocuments(values: readonly (JsonValue | JsonObject)[]): string {
  return values.map((value) => `---\n${dumpYaml(value)}`).join('');
}
