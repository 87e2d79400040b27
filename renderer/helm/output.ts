import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { describeObject } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';

/** How people read an object that may lack parts of its identity. */
export function objectLabel(object: JsonObject): string {
  const metadata = isObject(object.metadata) ? object.metadata : {};
  const text = (value: unknown): string => (typeof value === 'string' ? value : '?');
  return describeObject({
    apiVersion: text(object.apiVersion),
    kind: text(object.kind),
    name: text(metadata.name),
    ...(typeof metadata.namespace === 'string' ? { namespace: metadata.namespace } : {}),
  });
}

/** The template that the line of Helm's output at `line` came from, by the comments that Helm writes. */
function templateAt(lines: readonly string[], line: number): string {
  for (let at = Math.min(line, lines.length) - 1; at >= 0; at--) {
    const source = /^# Source: (.+)$/.exec(lines[at] ?? '')?.[1];
    if (source !== undefined) return source;
  }
  return 'the chart';
}

/** The objects that Helm printed. What is not an object with apiVersion, kind and name is a problem. */
export function readOutput(text: string): { objects: JsonObject[]; problems: Problem[] } {
  const { documents, problems: broken } = parseYaml(text, 'helm template');
  const lines = broken.length > 0 || documents.length > 0 ? text.split('\n') : [];
  const problems: Problem[] = broken.map((problem) => {
    const { message, line } = problem;
    return {
      reason: 'HelmOutputInvalid',
      message: `the rendered YAML is broken: ${message}`,
      file: templateAt(lines, line ?? 1),
    };
  });
  const objects: JsonObject[] = [];
  for (const document of documents) {
    const { value } = document;
    const metadata = isObject(value) && isObject(value.metadata) ? value.metadata : {};
    const complete =
      isObject(value) &&
      [value.apiVersion, value.kind, metadata.name].every((field) => typeof field === 'string' && field !== '');
    if (isObject(value) && complete) objects.push(value);
    else
      problems.push({
        reason: 'HelmOutputInvalid',
        message: 'a rendered document lacks apiVersion, kind or metadata.name',
        file: templateAt(lines, document.line),
      });
  }
  return { objects, problems };
}
