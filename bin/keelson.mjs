#!/usr/bin/env node
// Runs the bundled program. It needs Node 22.18 or later: this one, or the pinned one among the optional packages.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../dist/keelson.mjs', import.meta.url));
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

function pinnedNode() {
  try {
    return createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`);
  } catch {
    return undefined;
  }
}

if (!existsSync(program)) {
  console.error('keelson: dist/keelson.mjs is missing; in a source tree use `npm run keelson --`');
  process.exit(1);
}
if (major > 22 || (major === 22 && minor >= 18)) await import(program);
else {
  const node = pinnedNode();
  if (node === undefined) {
    console.error(
      `keelson: Node ${process.versions.node} is too old (22.18 is needed), and no pinned Node is installed`,
    );
    process.exit(1);
  }
  const child = spawn(node, [program, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => child.kill(name));
  child.on('error', (error) => {
    console.error(`keelson: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 128)));
}
