import type { RunningProxy } from '../../proxy/start-proxy.ts'

/** What a proxy did, in one line. `refused` counts what was misused, too. */
export function describeTotals(totals: ReturnType<RunningProxy['totals']>, credentials: number): string {
  const { requests, refused, misused, redacted, lost } = totals
  return [
    `${count(requests, 'request')} with ${count(credentials, 'credential')}`,
    `${refused} refused`,
    ...(misused === 0 ? [] : [`${count(misused, 'placeholder')} misused`]),
    `${count(redacted, 'secret')} masked`,
    ...(lost === 0 ? [] : [`${lost} not recorded`]),
  ].join(', ')
}

/** Where what was refused can be read; empty where nothing was. */
export const whereRefused = (
  { refused }: Pick<ReturnType<RunningProxy['totals']>, 'refused'>,
  run: string,
) => (refused === 0 ? '' : `. What was refused: mayfly runs requests ${run} --refused`)

export const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
