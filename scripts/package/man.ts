import { EXIT_MEANINGS, type ExitCode } from '../../src/cli/frame/failure.ts'
import { optionRows, usageOf } from '../../src/cli/frame/help.ts'
import { GLOBALS, HELP, type Options } from '../../src/cli/frame/options.ts'
import { globalsOf } from '../../src/cli/frame/parse.ts'
import type { AnyVerb, VerbGroup } from '../../src/cli/frame/verb.ts'
import { GROUPS } from '../../src/cli/verbs.ts'
import { leaves } from '../docs-cli.ts'

export interface ManPage {
  /** `mayfly-agent-create.1` */
  readonly file: string
  readonly text: string
}

/** The manual: a page for the command, and one for each verb that people call. */
export async function renderManPages(version: string): Promise<ManPage[]> {
  const pages = [{ file: 'mayfly.1', text: overviewPage(version) }]
  for (const [words, entry] of GROUPS.flatMap(({ verbs }) => verbs.flatMap(leaves))) {
    if (entry.hidden === true) continue
    const name = `mayfly-${words.replace(' ', '-')}`
    pages.push({ file: `${name}.1`, text: verbPage(version, name, words, entry.summary, await entry.load()) })
  }
  return pages
}

function overviewPage(version: string): string {
  return [
    ...head('mayfly', version, 'short-lived credentials for agents: issued, ended and recorded'),
    '.SH SYNOPSIS',
    `.B ${roff('mayfly')}`,
    roff('[options] <command>'),
    '.SH DESCRIPTION',
    roff(
      'Mayfly hands short-lived credentials to AI agents, CI jobs and scripts. Every credential is recorded, and expires or is revoked.',
    ),
    roff('Run `mayfly <command> --help`, or read the page of the command, such as mayfly-get(1).'),
    ...GROUPS.flatMap(groupSection),
    ...optionSection('OPTIONS OF EVERY COMMAND', { ...GLOBALS, ...HELP }),
    ...exitSection([0, 1, 2, 3, 4, 5]),
    '.SH FILES',
    ...item('/etc/mayfly/mayfly.yaml', 'configuration of the server'),
    ...item('/var/lib/mayfly', 'data of the server'),
    ...item('~/.config/mayfly', 'profiles and logins of the user'),
    '',
  ].join('\n')
}

function groupSection({ title, verbs }: VerbGroup): string[] {
  const rows = verbs.flatMap(leaves).filter(([, { hidden }]) => hidden !== true)
  return [`.SH ${title.toUpperCase()}`, ...rows.flatMap(([words, { summary }]) => item(words, summary))]
}

function verbPage(version: string, name: string, words: string, summary: string, verb: AnyVerb): string {
  const args = verb.arguments ?? []
  return [
    ...head(name, version, summary),
    '.SH SYNOPSIS',
    `.B ${roff(`mayfly ${words}`)}`,
    roff(usageOf(verb)),
    '.SH DESCRIPTION',
    roff(verb.description),
    ...(args.length === 0 ? [] : ['.SH ARGUMENTS']),
    ...args.flatMap(({ name: form, description, choices }) =>
      item(form, choices === undefined ? description : `${description} (${choices.join(', ')})`),
    ),
    ...optionSection('OPTIONS', { ...verb.options, ...HELP }),
    ...optionSection('OPTIONS OF EVERY COMMAND', globalsOf(verb)),
    '.SH EXAMPLES',
    ...verb.examples.flatMap(({ command, about }) => item(command, about)),
    ...exitSection([0, 1, 2, ...(verb.exits ?? [])]),
    '.SH SEE ALSO',
    '.BR mayfly (1)',
    '',
  ].join('\n')
}

const head = (name: string, version: string, summary: string) => [
  `.TH ${roff(name).toUpperCase()} 1 "" "Mayfly ${roff(version)}" "Mayfly"`,
  '.SH NAME',
  `${roff(name)} \\- ${roff(summary)}`,
]

/** A term in bold, and its meaning below it. */
const item = (term: string, meaning: string) => ['.TP', `.B ${roff(term)}`, roff(meaning)]

function optionSection(title: string, options: Options): string[] {
  const rows = optionRows(options)
  if (rows.length === 0) return []
  return [`.SH ${title}`, ...rows.flatMap(([flags, meaning]) => item(flags, meaning))]
}

function exitSection(codes: readonly ExitCode[]): string[] {
  return ['.SH EXIT STATUS', ...codes.flatMap((code) => item(String(code), EXIT_MEANINGS[code]))]
}

/** Text that roff prints as it is: no request at the start of a line, and `-` as the character that people type. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('"', '\\(dq')
    .replace(/^([.'])/gm, '\\&$1')
}
