import { homedir } from 'node:os';
import { dirname } from 'node:path';
import type { SourceFile } from './sources.ts';

const longest = 400;

/** Names of the public package registries; put together here so that this file does not hold them either. */
const registryHosts = [
  ['registry', 'npmjs', 'org'],
  ['proxy', 'golang', 'org'],
  ['sum', 'golang', 'org'],
  ['pypi', 'org'],
  ['files', 'pythonhosted', 'org'],
  ['deb', 'debian', 'org'],
].map((parts) => parts.join('.'));

const unfinished = new RegExp(`\\b(?:${['TO' + 'DO', 'FIX' + 'ME'].join('|')})\\b`);
const partial = new RegExp(`\\b(?:test|suite|\\w+Suite)\\.(?:${['on' + 'ly', 'sk' + 'ip'].join('|')})\\(`);

/**
 * What a file of the tree may not hold: a registry host, a path of this machine, more than 400 lines of source,
 * unfinished marks, tests that are left out. `machine` has the folders of this machine that must not be named.
 */
export function treeProblems(files: readonly SourceFile[], machine: readonly string[]): string[] {
  const words = [...registryHosts, ...machine.filter((path) => path.length > 2)];
  return files.flatMap(({ path, text }) => {
    const lines = text.split('\n');
    const found = lines.flatMap((line, index) => {
      return [...namedIn(line, words), ...(path.endsWith('.ts') ? unfinishedIn(line) : [])].map(
        (problem) => `${path}:${index + 1}: ${problem}`,
      );
    });
    return [...wholeFile(path, text, lines.length - 1), ...found];
  });
}

function wholeFile(path: string, text: string, lines: number): string[] {
  const problems: string[] = [];
  if (path.endsWith('.ts') && lines > longest) problems.push(`${path}: ${lines} lines, at most ${longest}`);
  if (path === 'package-lock.json' && text.includes('"resolved"')) {
    problems.push(`${path}: names download addresses; install with the project's .npmrc`);
  }
  return problems;
}

function namedIn(line: string, words: readonly string[]): string[] {
  return words.filter((word) => line.includes(word)).map((word) => `names ${word}`);
}

function unfinishedIn(line: string): string[] {
  const excerpt = line.trim().slice(0, 80);
  return [
    ...(unfinished.test(line) ? [`unfinished: ${excerpt}`] : []),
    ...(partial.test(line) ? [`leaves tests out: ${excerpt}`] : []),
  ];
}

/** The folders whose names would tell on which machine the tree was made; the home of root is the same everywhere. */
export function machineFolders(top: string): string[] {
  return [`${dirname(top)}/`, `${homedir()}/`].filter((folder) => folder !== '/root/');
}
