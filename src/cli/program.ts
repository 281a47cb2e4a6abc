import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'

/** Each verb is loaded only when it is called: start-up time is what a command line is judged by. */
interface Verb {
  readonly name: string
  readonly summary: string
  /** Adds options and action; the action returns the exit code through `exit`. */
  load(): Promise<(command: Command, exit: (code: number) => void) => void>
}

const VERBS: readonly Verb[] = [
  {
    name: 'server',
    summary: 'run the server',
    load: async () => (await import('./commands/server.ts')).describeServer,
  },
]

export const EXIT_FAILURE = 1
export const EXIT_USAGE = 2

/** The version of the package, from the same place in the sources and in the build. */
export function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return String((JSON.parse(text) as { version: unknown }).version)
}

/** Runs one command line and returns its exit code: 0, 1 for a failure, 2 for wrong usage or configuration. */
export async function run(argv: readonly string[]): Promise<number> {
  let code = 0
  const program = new Command('mayfly')
    .description('Short-lived credentials for agents: issued, ended and recorded.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .showHelpAfterError('Run it with --help to see what there is.')
    .exitOverride()
  for (const verb of VERBS) {
    const command = program.command(verb.name).summary(verb.summary).exitOverride()
    if (!argv.includes(verb.name)) continue
    const describe = await verb.load()
    describe(command, (result) => {
      code = result
    })
  }
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE
    process.stderr.write(`mayfly: ${error instanceof Error ? error.message : String(error)}\n`)
    return EXIT_FAILURE
  }
}
