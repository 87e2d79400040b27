/** A headless Chromium of the distribution, spoken to in its own protocol: no library stands between a test and the browser. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { WebSocket } from 'undici';

// biome-ignore lint/suspicious/noExplicitAny: answers of the protocol are read loosely
type Loose = any;

export interface Tab {
  send(method: string, params?: object): Promise<Loose>;
  /** The value of an expression in the page. */
  evaluate(expression: string): Promise<Loose>;
  /** Waits until an expression is true, without asking the clock for it: the page answers. */
  until(expression: string): Promise<void>;
  open(url: string): Promise<void>;
  /** Presses a key as a person does. */
  press(key: string): Promise<void>;
  /** PNG of the whole page. */
  shot(): Promise<Buffer>;
  close(): Promise<void>;
  /** What the browser complained of: errors of scripts, violations of the policy. */
  readonly complaints: readonly string[];
}

export interface Browser {
  tab(): Promise<Tab>;
  close(): Promise<void>;
}

const limitMs = 20_000;

const flags = [
  '--headless=new',
  '--remote-debugging-port=0',
  '--remote-debugging-address=127.0.0.1',
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-extensions',
  '--disable-sync',
  '--hide-scrollbars',
  '--force-device-scale-factor=1',
];

/** Starts the browser in a folder of its own. */
export async function startBrowser(): Promise<Browser> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-browser-'));
  // As root it can not build its sandbox; it is shown pages of this test alone.
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const child = spawn('chromium', [...flags, ...sandbox, `--user-data-dir=${folder}`, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  const end = async (): Promise<void> => {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
      process.kill(-child.pid, 'SIGKILL');
      await gone;
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const socket = await connect(await endpoint(child));
    return {
      tab: () => openTab(socket),
      async close() {
        socket.close();
        await end();
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Where the browser listens, as it says on its standard error. */
function endpoint(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error(`chromium did not listen within ${limitMs} ms`)), limitMs);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`chromium ended with ${code}`)));
    if (child.stderr === null) return;
    createInterface(child.stderr).on('line', (line) => {
      const found = /^DevTools listening on (ws:\S+)/.exec(line)?.[1];
      if (found === undefined) return;
      clearTimeout(limit);
      resolve(found);
    });
  });
}

interface Wire {
  send(method: string, params: object, session?: string): Promise<Loose>;
  on(session: string, heard: (method: string, params: Loose) => void): void;
  close(): void;
}

async function connect(url: string): Promise<Wire> {
  const socket = new WebSocket(url);
  const waiting = new Map<number, { resolve: (value: Loose) => void; reject: (error: Error) => void }>();
  const listeners = new Map<string, (method: string, params: Loose) => void>();
  let next = 0;
  socket.addEventListener('message', ({ data }) => {
    const { id, result, error, method, params, sessionId } = JSON.parse(String(data));
    if (id === undefined) return listeners.get(sessionId ?? '')?.(method, params);
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) asked?.resolve(result);
    else asked?.reject(new Error(`${error.message}`));
  });
  socket.addEventListener('close', () => {
    for (const { reject } of waiting.values()) reject(new Error('the browser has gone'));
  });
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve());
    socket.addEventListener('error', () => reject(new Error('the browser refuses to be spoken to')));
  });
  return {
    send(method, params, session) {
      next += 1;
      const id = next;
      socket.send(JSON.stringify({ id, method, params, ...(session === undefined ? {} : { sessionId: session }) }));
      return new Promise((resolve, reject) => {
        const limit = setTimeout(() => reject(new Error(`${method}: no answer within ${limitMs} ms`)), limitMs);
        const settled =
          <T>(then: (value: T) => void) =>
          (value: T): void => {
            clearTimeout(limit);
            then(value);
          };
        waiting.set(id, { resolve: settled(resolve), reject: settled(reject) });
      });
    },
    on: (session, heard) => void listeners.set(session, heard),
    close: () => socket.close(),
  };
}

async function openTab(wire: Wire): Promise<Tab> {
  const { targetId } = await wire.send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await wire.send('Target.attachToTarget', { targetId, flatten: true });
  const complaints: string[] = [];
  let loaded: () => void = () => undefined;
  wire.on(sessionId, (method, params) => {
    if (method === 'Page.loadEventFired') loaded();
    if (method === 'Runtime.exceptionThrown')
      complaints.push(params.exceptionDetails.exception?.description ?? 'exception');
    if (method === 'Log.entryAdded' && params.entry.level === 'error') complaints.push(params.entry.text);
  });
  const send = (method: string, params: object = {}): Promise<Loose> => wire.send(method, params, sessionId);
  for (const domain of ['Page', 'Runtime', 'Log']) await send(`${domain}.enable`);
  const evaluate = async (expression: string): Promise<Loose> => {
    const { result, exceptionDetails } = await send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? expression);
    return result.value;
  };
  return {
    send,
    evaluate,
    complaints,
    async until(expression) {
      const watch = `new Promise((done, failed) => {
        const limit = setTimeout(() => failed(new Error('not within the limit: ' + ${JSON.stringify(expression)})), ${limitMs - 2_000});
        const look = () => { if (${expression}) { clearTimeout(limit); done(true); } else requestAnimationFrame(look); };
        look();
      })`;
      await evaluate(watch);
    },
    async open(url) {
      const ready = new Promise<void>((resolve) => {
        loaded = resolve;
      });
      const { errorText } = await send('Page.navigate', { url });
      if (errorText !== undefined) throw new Error(`${url}: ${errorText}`);
      await ready;
    },
    async press(key) {
      const codes: Readonly<Record<string, number>> = { Tab: 9, Enter: 13 };
      const text = key === 'Enter' ? { text: '\r' } : {};
      const code = { key, code: key, windowsVirtualKeyCode: codes[key] ?? 0 };
      await send('Input.dispatchKeyEvent', { type: 'keyDown', ...code, ...text });
      await send('Input.dispatchKeyEvent', { type: 'keyUp', ...code });
    },
    async close() {
      await wire.send('Target.closeTarget', { targetId });
    },
    async shot() {
      const { cssContentSize } = await send('Page.getLayoutMetrics');
      const { width, height } = cssContentSize;
      const clip = { x: 0, y: 0, width, height: Math.min(height, 6_000), scale: 1 };
      const { data } = await send('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true, clip });
      return Buffer.from(data, 'base64');
    },
  };
}
