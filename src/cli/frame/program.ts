import { installation } from '../../installation.ts'
import { GROUPS, VERBS } from '../verbs.ts'
import { EXIT, type Failure, failureOf } from './failure.ts'
import { findVerb } from './find-verb.ts'
import type { Globals } from './options.ts'
import { createOutput } from './output.ts'
import type { Surroundings } from './surroundings.ts'
import { jsonText, plain } from './terminal-text.ts'
import type { AnyVerb, Context } from './verb.ts'

/** The surroundings of a verb, before the frame knows whether the verb handles signals itself. */
export interface Host extends Omit<Surroundings, 'signal'> {
  /** Installs the signal handlers. */
  watchSignals(): AbortSignal
}

/** Runs one command line and returns its exit code. Reports every error on standard error and throws none. */
export async function run(argv: readonly string[], host: Host): Promise<number> {
  try {
    return await dispatch(argv, host)
  } catch (error) {
    return fail(host, failureOf(error), argv.includes('--json'))
  }
}

async function dispatch(argv: readonly string[], host: Host): Promise<number> {
  const out = createOutput(host, false)
  const found = await findVerb(argv, VERBS)
  if (found.what === 'version') {
    await out.result(installation.version)
    return EXIT.done
  }
  if (found.what !== 'verb') {
    const { overview, familyOverview } = await import('./help.ts')
    const columns = widthOf(host)
    const text = found.what === 'overview' ? overview(GROUPS, columns) : familyOverview(found.family, columns)
    if (argv.includes('--help') || argv.includes('-h') || argv[0] === 'help') {
      await out.result(text)
      return EXIT.done
    }
    out.note(text)
    return EXIT.usage
  }
  const verb = await found.entry.load()
  if (verb.passThrough === 'all' && !isHelp(found.argv)) return invoke(host, verb, {}, {}, [found.argv])
  const { parseVerb } = await import('./parse.ts')
  const parsed = isHelp(found.argv) ? 'help' : await parseVerb(found.words, verb, found.argv)
  if (parsed === 'help') {
    const { helpText } = await import('./help.ts')
    await out.result(helpText(found.words, verb, widthOf(host)))
    return EXIT.done
  }
  return invoke(host, verb, parsed.globals, parsed.options, parsed.args)
}

/** In columns; undefined without a terminal. */
const widthOf = ({ stdout }: Host) => (stdout.isTTY === true ? stdout.columns : undefined)

const isHelp = (argv: readonly string[]) => argv.length === 1 && (argv[0] === '--help' || argv[0] === '-h')

async function invoke(
  host: Host,
  verb: AnyVerb,
  globals: Globals,
  options: object,
  args: readonly unknown[],
): Promise<number> {
  const out = createOutput(host, globals.json === true)
  const signal = verb.ownSignals === true ? new AbortController().signal : host.watchSignals()
  // Copied as getters: opening a stream takes time, and many verbs do not use all three.
  const context: Context = Object.defineProperties(
    { signal, globals, out, verbs: VERBS },
    Object.getOwnPropertyDescriptors(host),
  ) as Context
  try {
    return (await verb.run(context, options, ...args)) ?? EXIT.done
  } catch (error) {
    out.clearProgress()
    const cause: unknown = signal.aborted ? signal.reason : error
    const { explain } = await import('../session/explain.ts')
    return fail(host, await explain(context, verb, cause), globals.json === true)
  } finally {
    out.clearProgress()
  }
}

/** Prints the failure on one line, or as JSON, and returns the exit code. */
function fail(host: Host, failure: Failure, isJson: boolean): number {
  if (failure.exitCode > 128) return failure.exitCode
  const { code, message, hint } = failure
  const text = isJson
    ? jsonText({ error: { code, message, ...(hint === undefined ? {} : { hint }) } })
    : inWords(failure)
  host.stderr.write(`${text}\n`)
  return failure.exitCode
}

function inWords({ message, hint }: Failure): string {
  const sentence = /[.!?)…]$/.test(message) ? message : `${message}.`
  return plain(`mayfly: ${[sentence, hint].filter(Boolean).join(' ')}`).replace(/\s*[\r\n]+\s*/g, ' ')
}
