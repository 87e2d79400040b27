// The one file that any Node >= 20 can run. It installs the pinned packages when they are missing or older than the
// lock file, then re-executes the pinned Node (a package of the lock file) with the program it was given.
// Usage: node bootstrap.mjs <program.ts> [arguments]
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const top = fileURLToPath(new URL('.', import.meta.url));
const pinned = join(top, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');

/** True when node_modules was laid from the lock file as it is now. */
function installed() {
  const [want, have] = [join(top, 'package-lock.json'), join(top, 'node_modules', '.package-lock.json')];
  if (!existsSync(have) || !existsSync(pinned)) return false;
  const packages = (file) => JSON.parse(readFileSync(file, 'utf8')).packages ?? {};
  const [wanted, present] = [packages(want), packages(have)];
  return Object.entries(wanted).every(
    ([path, entry]) => path === '' || entry.optional || entry.peer || present[path]?.version === entry.version,
  );
}

if (!installed()) {
  console.error('keelson: installing the packages of package-lock.json (npm ci)');
  const began = Date.now();
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: top,
    stdio: ['ignore', 2, 2],
  });
  if (npm.error || npm.status !== 0) {
    console.error(
      `keelson: npm ci failed${npm.error ? ` (${npm.error.message})` : ''}; it needs npm and a package registry`,
    );
    process.exit(1);
  }
  console.error(`keelson: packages installed in ${Math.round((Date.now() - began) / 1000)} s`);
}
if (!existsSync(pinned)) {
  console.error(`keelson: no pinned Node for ${process.platform}/${process.arch}; supported: linux on x64 and arm64`);
  process.exit(1);
}

const child = spawn(pinned, ['--disable-warning=ExperimentalWarning', ...process.argv.slice(2)], { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
