import { Command, CommanderError, Option } from 'commander';
import { asksForJson, failure, problemsJson } from './failure.ts';
import { type ExitCode, exitCodes, type Invocation, outputFormats } from './invocation.ts';
import { version } from './version.ts';

/** What a command's file exports: the work, given its options and its arguments. */
type Run<O> = (invocation: Invocation, options: O, ...args: string[]) => Promise<ExitCode>;

interface Root {
  readonly program: Command;
  /** The action of a command. Its file is loaded when it is called: most commands need little of what others need. */
  action<O>(load: () => Promise<{ run: Run<O> }>): (...args: unknown[]) => Promise<void>;
  /** Says how a command ended that is no action of this table. */
  ended(code: ExitCode): void;
  code(): ExitCode;
}

const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];

function root(invocation: Invocation, json: boolean): Root {
  let code: ExitCode = exitCodes.done;
  const program = new Command('keelson')
    .description("Keeps a cluster's substrate in Git, and calls nothing ready until something looked.")
    .version(version)
    .option('-c, --cluster <folder>', 'folder of a cluster; may be given more than once', collect)
    .addOption(new Option('-o, --output <format>', 'form of results').choices([...outputFormats]).default('table'))
    .option('--kubeconfig <file>', 'how to reach the cluster; KUBECONFIG or ~/.kube/config when absent')
    .option('--context <name>', 'context of the kubeconfig')
    .exitOverride()
    .showHelpAfterError('(keelson help VERB tells more)')
    .configureOutput({
      writeOut: (text) => invocation.out(text.trimEnd()),
      // What is wrong with a command line is told once, in the form that was asked for.
      writeErr: (text) => json || invocation.err(text.trimEnd()),
    });
  return {
    program,
    action:
      (load) =>
      async (...args) => {
        const command = args.at(-1) as Command;
        const { run } = await load();
        const positional = command.processedArgs.map((value) => String(value ?? ''));
        code = await run(invocation, command.optsWithGlobals() as never, ...positional);
      },
    ended(given) {
      code = given;
    },
    code: () => code,
  };
}

function renderingCommands({ program, action }: Root): void {
  program
    .command('lock')
    .description('resolve charts, images and tools to digests and write keelson.lock.yaml')
    .option('--update <what>', 'resolve again: chart, probe, executor, or an image by name')
    .action(action(() => import('./commands/lock.ts')));
  program
    .command('render')
    .description('render a cluster; without options nothing is written')
    .option('--out <folder>', 'write the tree below this folder')
    .option('--check', 'compare with the folder, or with what is published; exit 3 when it differs')
    .option('--no-cache', 'use nothing that earlier renders left in the cache folder')
    .action(action(() => import('./commands/render.ts')));
  program
    .command('plan')
    .description('what would change in the cluster, from what is published to what the specs say')
    .option('--from <revision>', 'revision of the specs in place of what is published')
    .option('--to <revision>', 'revision of the specs in place of the working tree')
    .option('--live', 'start from what the cluster enforces in place of what is published')
    .option('--diff', 'show changed objects line by line')
    .option('--detailed-exitcode', 'exit 3 when anything changes')
    .action(action(() => import('./commands/plan.ts')));
  program
    .command('publish')
    .description('render, sign and commit to the rendered repository')
    .option('--dry-run', 'say what would be committed')
    .option('--key <file>', 'private key; KEELSON_SIGNING_KEY_FILE or KEELSON_SIGNING_KEY when absent')
    .option('--unsigned', 'publish payloads without a signature')
    .option('--forget-kinds', 'take back the rights to objects that no payload names any more')
    .action(action(() => import('./commands/publish.ts')));
  program
    .command('approve <release>')
    .description('print the lines to commit that approve a plan')
    .requiredOption('--plan <digest>', 'digest of the plan')
    .action(action(() => import('./commands/approve.ts')));
  program
    .command('mirror')
    .description('copy all that a cluster pulls and is rendered from, by digest, to a registry or a folder')
    .option('--to <registry>', 'registry, with or without a path; wherever spec.registries leads when absent')
    .option('--oci <folder>', 'folder of an OCI image layout in place of a registry')
    .option('--from <folder>', 'folder of an OCI image layout in place of the registries that specs name')
    .option('--jobs <n>', 'blobs at a time', '4')
    .action(action(() => import('./commands/mirror.ts')));
  program
    .command('verify')
    .description('check tree, payloads, what carries them and signatures against one another')
    .option('--from <folder>', 'folder of a rendered tree in place of what is published')
    .option('--revision <commit>', 'commit of the rendered repository in place of the newest')
    .option('--trust <file>', 'public key that must have signed, or one of several', collect)
    .option('--live', 'check the cluster too: inbox, retained copies, Releases, trusted keys')
    .action(action(() => import('./commands/verify.ts')));
}

function clusterCommands({ program, action }: Root): void {
  program
    .command('inventory')
    .description('write the facts about the cluster that rendering relies on to inventory.yaml')
    .option('--check', 'compare only; exit 3 when it differs')
    .option('--service-cidr <cidr>', 'service range, where the cluster does not tell it; may be given twice', collect)
    .action(action(() => import('./commands/inventory.ts')));
  program
    .command('bootstrap')
    .description('bring the executor and the trusted keys into a cluster')
    .option('--from <folder>', 'folder of a rendered tree in place of what is published')
    .option('--revision <commit>', 'commit of the rendered repository in place of the newest')
    .option('--trust <file>', 'public key; may be given more than once', collect)
    .option('--replace-trust', 'let the keys given replace others that are trusted now')
    .option('--timeout <duration>', 'how long to wait for the executor', '5m')
    .option('--no-wait', 'do not wait for the executor')
    .option('--take-over', "after a change of courier: what the old one applied becomes the new one's")
    .option('--no-courier', 'leave the objects of Flux or Argo CD out, where they are not installed yet')
    .action(action(() => import('./commands/bootstrap.ts')));
  program
    .command('deliver')
    .description('apply what is published, as a courier does')
    .option('--from <folder>', 'folder of a rendered tree in place of what is published')
    .option('--revision <commit>', 'commit of the rendered repository in place of the newest')
    .option('--follow', 'stay until the releases are done')
    .option('--timeout <duration>', 'how long to follow', '30m')
    .action(action(() => import('./commands/deliver.ts')));
  program
    .command('status [release]')
    .description('how far the releases are, and what they wait for')
    .option('-n, --namespace <name>', 'namespace of the executor', 'keelson-system')
    .option('-w, --watch', 'stay and tell every change')
    .action(action(() => import('./commands/status.ts')));
  program
    .command('evidence')
    .description('what the last round of observation saw, and how old it is')
    .option('-n, --namespace <name>', 'namespace of the executor', 'keelson-system')
    .option('--node <name>', 'one node alone')
    .option('--page <url>', 'status page of the executor that leads, where its port is forwarded already')
    .action(action(() => import('./commands/evidence.ts')));
  program
    .command('uninstall <release>')
    .description('show what taking a release out would do; with --approve, do it')
    .option('-n, --namespace <name>', 'namespace of the executor', 'keelson-system')
    .option('--approve <digest>', 'digest of the plan that was shown: carry it out')
    .option('--delete', 'delete what can be made again; everything stays in the cluster otherwise')
    .option('--delete-definitions', 'with --delete: delete its CustomResourceDefinitions that have no object left')
    .option('--from <folder>', 'folder of a rendered tree in place of what is published')
    .option('--revision <commit>', 'commit of the rendered repository in place of the newest')
    .option('--no-git-check', 'do not look whether what is published still names the release')
    .option('--timeout <duration>', 'how long to wait for the executor', '30m')
    .action(action(() => import('./commands/uninstall.ts')));
  program
    .command('diff')
    .description('how the cluster differs from what is published; exit 3 when it does')
    .option('--from <folder>', 'folder of a rendered tree in place of what is published')
    .action(action(() => import('./commands/diff.ts')));
}

function keyCommands({ program, action }: Root): void {
  const keys = program.command('keys').description('signing keys, and the keys that a cluster trusts');
  const namespace = ['-n, --namespace <name>', 'namespace of the executor', 'keelson-system'] as const;
  keys
    .command('init')
    .description('make a signing key')
    .option('--out <file>', 'file of the private key; the public key goes to FILE.pub', 'keelson-signing.key')
    .action(action(() => import('./commands/keys-init.ts')));
  keys
    .command('list')
    .description('keys that the cluster trusts, and what they signed')
    .option(...namespace)
    .action(action(() => import('./commands/keys-list.ts')));
  keys
    .command('trust <file>')
    .description('trust a public key beside those that are trusted already')
    .option(...namespace)
    .action(action(() => import('./commands/keys-trust.ts')));
  keys
    .command('untrust <keyId>')
    .description('accept nothing more that a key signed; what was accepted stays')
    .option(...namespace)
    .option('--in-use', 'also while it signed what a Release asks for')
    .action(action(() => import('./commands/keys-untrust.ts')));
}

function pkiCommands({ program, action }: Root): void {
  const pki = program.command('pki').description('the authority that signs for the executor and its probes');
  const namespace = ['-n, --namespace <name>', 'namespace of the executor', 'keelson-system'] as const;
  pki
    .command('status')
    .description('who signs, who is believed, and what comes next')
    .option(...namespace)
    .action(action(() => import('./commands/pki-status.ts')));
  pki
    .command('rotate')
    .description('ask for another authority; the old one is believed until what it signed has expired')
    .option(...namespace)
    .action(action(() => import('./commands/pki-rotate.ts')));
}

function addressCommands({ program, action }: Root): void {
  const addresses = program
    .command('addresses')
    .description('the address ledger: who holds what, and what people do to it');
  addresses
    .command('list', { isDefault: true })
    .description('who holds which address, what waits, and how full the classes are')
    .option('--class <name>', 'one class alone')
    .option('-n, --namespace <name>', 'claims and Services of one namespace alone')
    .action(action(() => import('./commands/addresses-list.ts')));
  addresses
    .command('adopt <service>')
    .description('show how the address that a Service is pinned to would come under the ledger; with --approve, do it')
    .option('-n, --namespace <name>', 'namespace of the Service, and of its claim', 'default')
    .option('--class <name>', 'class of the address; the one whose ranges hold it when absent')
    .option('--claim <name>', 'name of the claim; that of the Service when absent')
    .option('--approve <digest>', 'digest of the plan that was shown: carry it out')
    .option('--audit <file>', 'what is done is appended here; keelson-adopt-NAMESPACE-SERVICE.jsonl when absent')
    .option('--timeout <duration>', 'how long to wait for the core or the driver after each step', '2m')
    .action(action(() => import('./commands/addresses-adopt.ts')));
  addresses
    .command('migrate')
    .description('propose classes for Git, and the steps that bring the Services of MetalLB under the ledger')
    .action(action(() => import('./commands/addresses-migrate.ts')));
  addresses
    .command('release-finalizers')
    .description('where the controllers are gone for good: show what waits for them; with --approve, let it go')
    .option('--approve <digest>', 'digest of the plan that was shown: carry it out')
    .option('--audit <file>', 'what is done is appended here', 'keelson-release-finalizers.jsonl')
    .action(action(() => import('./commands/addresses-release-finalizers.ts')));
}

function imageCommands({ program, action }: Root): void {
  const image = program
    .command('image')
    .description("Keelson's own images: what the executor's pods run, and what its probes are");
  image
    .command('build')
    .description('build it from this very program; without --oci it is only told what it would be')
    .option('--oci <folder>', 'new folder for it, as an OCI image layout')
    .option('--probe', 'the image of the probes, in place of that of the executor')
    .action(action(() => import('./commands/image-build.ts')));
  image
    .command('push')
    .description('build it, send it to a registry, and print the lines for cluster.yaml')
    .requiredOption('--to <repository>', 'host[:port]/repository[:tag]; the tag is the version when absent')
    .option('--from <folder>', 'what `image build --oci` wrote, in place of building it')
    .option('--probe', 'the image of the probes, in place of that of the executor')
    .option('--both', 'both images: that of the probes to the repository of this name and "-probe"')
    .option('--ca <file>', 'PEM file with the CA of the registry')
    .action(action(() => import('./commands/image-push.ts')));
}

function helpCommands({ program, action }: Root): void {
  program
    .command('explain <reason>')
    .description('what a reason means, and what to do')
    .action(action(() => import('./commands/explain.ts')));
  program
    .command('completion')
    .description('print a completion script')
    .addArgument(program.createArgument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: string) => {
      const { completion } = await import('./completion.ts');
      program.configureOutput().writeOut?.(completion(shell, program));
    });
}

/** Commands of the programs that run in a cluster; people never wait for them to load. */
async function runningCommands(root: Root, invocation: Invocation, verb: string | undefined): Promise<void> {
  if (verb === 'probe') {
    const { probeCommand } = await import('./commands/probe.ts');
    root.program.addCommand(probeCommand(invocation, root.ended));
  }
  if (verb !== 'executor') return;
  const { executorCommand } = await import('./commands/executor.ts');
  // A command that was not made by the program knows nothing of how it tells errors and ends.
  root.program.addCommand(executorCommand(invocation).copyInheritedSettings(root.program));
}

/** Runs a command line (without program names). Nothing throws: errors are told, and become the exit status. */
export async function main(args: readonly string[], invocation: Invocation): Promise<ExitCode> {
  const json = asksForJson(args);
  const made = root(invocation, json);
  renderingCommands(made);
  clusterCommands(made);
  keyCommands(made);
  pkiCommands(made);
  addressCommands(made);
  imageCommands(made);
  helpCommands(made);
  try {
    await runningCommands(made, invocation, args[0]);
    await made.program.parseAsync([...args], { from: 'user' });
    return made.code();
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exitCodes.done;
      const message = error.message.replace(/^error: /, '');
      if (json) invocation.err(problemsJson([{ reason: 'CommandInvalid', message }]));
      return exitCodes.invalid;
    }
    const { text, problems, code } = failure(error, invocation.signal);
    invocation.err(json ? problemsJson(problems) : text);
    return code;
  }
}
