import type { Entry, Group, VerbFamily } from './verb.ts'

const GROUPS: Readonly<Record<Group, string>> = {
  agent: 'For agents',
  tool: 'For other tools',
  admin: 'For administrators',
  other: 'Besides',
}

/** What `mayfly --help` prints; no verb is loaded for it. */
export function overview(verbs: readonly Entry[]): string {
  const shown = verbs.filter((entry) => !('hidden' in entry))
  const width = Math.max(...shown.map(({ name }) => name.length))
  const groups = Object.entries(GROUPS).map(([group, title]) => {
    const lines = shown.filter((entry) => entry.group === group).map((entry) => line(entry, width))
    return `${title}:\n${lines.join('\n')}`
  })
  return [
    'Usage: mayfly [options] <command>',
    'Short-lived credentials for agents: issued, ended and recorded.',
    ...groups,
    `Options of every command:
  --server <url>    the server [env: MAYFLY_SERVER]
  --profile <name>  whose login [env: MAYFLY_PROFILE]
  --ca <file>       authorities to trust, PEM [env: MAYFLY_CA_FILE]
  --json            print JSON
  --no-keychain     keep secrets in files [env: MAYFLY_KEYCHAIN=off]
  -h, --help        print help, also of each command
  -V, --version     print the version`,
    `Exit codes: 0 done, 1 failed, 2 wrong usage, 3 cannot reach the server, 4 not authenticated, 5 refused.`,
  ].join('\n\n')
}

/** What `mayfly agent --help` prints. */
export function familyOverview(family: VerbFamily): string {
  const width = Math.max(...family.verbs.map(({ name }) => name.length))
  const lines = family.verbs.map((entry) => line(entry, width))
  return [
    `Usage: mayfly ${family.name} <command>`,
    `${family.summary[0]?.toUpperCase()}${family.summary.slice(1)}.`,
    lines.join('\n'),
    `Run \`mayfly ${family.name} <command> --help\` for each.`,
  ].join('\n\n')
}

function line(entry: Entry, width: number): string {
  return `  ${entry.name.padEnd(width)}  ${entry.summary}`
}
