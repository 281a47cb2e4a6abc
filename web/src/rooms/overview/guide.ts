/** What to paste into a terminal, now that there is something to paste it for. */
export function commandLines(server: string, backend: string): readonly { what: string; text: string }[] {
  return [
    {
      what: 'as the agent: log in with its token, which the command asks for',
      text: `export MAYFLY_SERVER=${server}\nmayfly login`,
    },
    { what: 'get a credential for ten minutes', text: `mayfly get ${backend} --ttl 10m` },
    {
      what: 'give a program one for as long as it runs',
      text: `mayfly run --backend ${backend} -- ./my-program`,
    },
    {
      what: 'or let another program ask to become an agent; its request comes into your inbox',
      text: `mayfly enroll --server ${server} --name my-agent --scope ${backend}`,
    },
  ]
}

export interface Known {
  /** Undefined: not known yet; null: there is none. */
  readonly backend: string | null | undefined
  readonly agent: string | null | undefined
  readonly credential: string | null | undefined
}

export type Step = 'backend' | 'agent' | 'credential'
const STEPS: readonly Step[] = ['backend', 'agent', 'credential']

/** The first step that is not done; undefined: all are, or it is not known yet. */
export function nextStep(known: Known): Step | undefined {
  return STEPS.find((step) => known[step] === null)
}

/** Whether a server is so new that the guide helps more than numbers would. Undefined: not known yet. */
export function isNew(known: Known): boolean | undefined {
  if (STEPS.some((step) => known[step] === undefined)) return undefined
  return nextStep(known) !== undefined
}
