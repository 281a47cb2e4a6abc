import { faultOfVariable } from '../../../src/cli/frame/variable-names.ts'
import { ActionError } from './runner.ts'

/** One line of the input `env`. */
export interface Wanted {
  readonly variable: string
  readonly backend: string
  readonly field: string
}

const LINE = /^([^=\s]+)=([^:\s]+)(?::(\S+))?$/
/** The runner and its steps take these at their word. */
const OF_THE_RUNNER = /^(?:GITHUB|RUNNER|ACTIONS|INPUT|STATE)_|^CI$/i

/** Reads `NAME=backend` and `NAME=backend:field`, one a line. Errors name the line and do not repeat it: it may hold a secret by mistake. */
export function readWanted(text: string): Wanted[] {
  const seen = new Set<string>()
  return text.split(/\r?\n/).flatMap((raw, index) => {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) return []
    const where = `Line ${index + 1} of the input env`
    const [, variable, backend, field = 'token'] = LINE.exec(line) ?? []
    if (variable === undefined || backend === undefined)
      throw new ActionError(`${where} is not of the form NAME=backend or NAME=backend:field.`)
    const fault = OF_THE_RUNNER.test(variable) ? 'is a variable of the runner' : faultOfVariable(variable)
    if (fault !== undefined)
      throw new ActionError(`${where}: ${JSON.stringify(variable.slice(0, 60))} ${fault}.`)
    if (seen.has(variable)) throw new ActionError(`${where}: ${variable} is set twice.`)
    seen.add(variable)
    return [{ variable, backend, field }]
  })
}
