import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shellQuote } from '../../src/domain/formats/shell-word.ts'
import { commandScript } from '../support/compile-cache.ts'
import { joinedMain } from '../support/joined-main.ts'
import { isAsShown, Known } from './masks.ts'
import { type GuideStep, type RunStep, readGuide, type Shown } from './read-guide.ts'
import { type GuideShell, startShell } from './shell.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface GuideOptions {
  readonly env: Readonly<Record<string, string>>
  /** Where bash starts. */
  readonly cwd: string
  /** Text of the page and what replaces it here: `[['https://mayfly.example.com', url]]`. Longest first. */
  readonly replace?: readonly (readonly [string, string])[]
  readonly timeoutMs?: number
  /** Writes the actual output into the page instead of comparing it. */
  readonly update?: boolean
}

export interface StepResult {
  readonly line: number
  readonly command: string
  readonly output: string
}

/** Runs a page. Throws at the first step that fails or prints something else, with its line in the page. */
export async function runGuide(path: string, options: GuideOptions): Promise<StepResult[]> {
  const { env, cwd, replace = [], timeoutMs = 120_000 } = options
  const file = resolve(ROOT, path)
  const page = await readFile(file, 'utf8')
  const steps = readGuide(page)
  if (!steps.some(({ kind }) => kind === 'run')) throw new Error(`${path}: no command to run`)
  const shell = startShell({ env, cwd, timeoutMs })
  const run: Run = { path, shell, replace, known: new Known(), update: options.update ?? isUpdate() }
  const results: StepResult[] = []
  const edits: { shown: Shown; text: string }[] = []
  try {
    for (const step of steps) {
      const output = await runStep(run, step)
      if (step.kind !== 'run') continue
      results.push({ line: step.line, command: step.command, output })
      if (step.output !== undefined && !isAsShown(swap(step.output.text, replace), output))
        edits.push({ shown: step.output, text: restored(run, output) })
    }
  } finally {
    await shell.close()
  }
  if (edits.length > 0) await writeFile(file, edited(page, edits))
  const open = await findOpenSecrets(cwd)
  if (open.length > 0) throw new Error(`${path}: others can read these secrets: ${open.join(', ')}`)
  return results
}

const SECRET =
  /\bck[rs]_[0-9a-f]{40}|\bmf[slk]_[0-9a-f]{40}|\beyJ[\w-]{10,}\.[\w-]{10,}\.|change-me|BEGIN [A-Z ]*PRIVATE KEY/

/** Files with secrets that others than their owner can read. */
async function findOpenSecrets(directory: string): Promise<string[]> {
  const all = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = all.filter((one) => one.isFile() && !one.parentPath.includes('node_modules'))
  const found = await Promise.all(
    files.map(async (one) => {
      const path = join(one.parentPath, one.name)
      const { mode } = await stat(path)
      return (mode & 0o077) !== 0 && SECRET.test(await readFile(path, 'latin1')) ? [path] : []
    }),
  )
  return found.flat()
}

const isUpdate = () => process.env['UPDATE_DOCS'] === '1'
const restored = ({ known, replace }: Run, output: string) =>
  swap(
    known.restore(output),
    replace.map(([from, to]) => [to, from] as const),
  )

interface Run {
  readonly path: string
  readonly shell: GuideShell
  readonly replace: readonly (readonly [string, string])[]
  readonly known: Known
  readonly update: boolean
}

/** Returns what the step printed. */
async function runStep({ path, shell, replace, known, update }: Run, step: GuideStep): Promise<string> {
  if (step.kind === 'file') {
    const file = shellQuote(swap(step.path, replace))
    const write = `mkdir -p ${shellQuote(dirname(swap(step.path, replace)))}\nprintf %s ${shellQuote(swap(step.text, replace))} > ${file}`
    return (await shell.run(write)).output
  }
  const command = known.translate(swap(step.command, replace))
  const where = `${path}:${step.line}: ${step.command.trim()}`
  const shown = step.output === undefined ? undefined : swap(step.output.text, replace)
  const { output, end } = step.isBackground
    ? await shell.start(command, isEnough(shown, update))
    : await shell.run(command)
  if (end !== undefined) throw new Error(`${where}\n${endOf(end, step)}, after:\n${output}`)
  if (shown === undefined) return output
  if (!update && !isAsShown(shown, output)) {
    const hint = `If that is right, update the page: UPDATE_DOCS=1 npx vitest run test/docs`
    throw new Error(`${where}\nprints:\n${output}\nand the page shows:\n${shown}\n${hint}`)
  }
  known.learn(shown, output)
  return output
}

/** A page that is updated need only show as many lines. */
const isEnough =
  (shown = '', update: boolean) =>
  (printed: string) =>
    update ? printed.split('\n').length >= shown.split('\n').length : isAsShown(shown, printed)

const endOf = (end: string, step: RunStep) =>
  step.isBackground ? 'did not print what the page shows' : `the shell ended early (exit code ${end})`

/** Not within a word: a port may be part of an id. */
function swap(text: string, pairs: Run['replace']): string {
  return pairs.reduce((all, [from, to]) => {
    const form = from.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    const whole = `${/^\w/.test(from) ? '(?<!\\w)' : ''}${form}${/\w$/.test(from) ? '(?!\\w)' : ''}`
    return all.replace(new RegExp(whole, 'g'), () => to)
  }, text)
}

function edited(page: string, edits: readonly { shown: Shown; text: string }[]): string {
  return edits.reduceRight((text, { shown: { from, to, indent }, text: output }) => {
    const trimmed = output.replace(/[ \t]+$/gm, '').trimEnd()
    const lines = trimmed === '' ? '' : `${trimmed}\n`.replace(/^(?=.)/gm, indent)
    return text.slice(0, from) + lines + text.slice(to)
  }, page)
}

/** Puts a `mayfly` of this checkout into `directory`, which goes first in PATH. */
export async function installMayfly(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  const path = join(directory, 'mayfly')
  await writeFile(path, commandScript(joinedMain()))
  await chmod(path, 0o755)
}
