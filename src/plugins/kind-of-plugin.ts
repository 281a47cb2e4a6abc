import { Value } from 'typebox/value'
import { GUARDED_MARK, type Kind, SECRET_MARK } from '../backends/kind.ts'
import { isObject, parseJson } from '../domain/formats/json.ts'
import type { PluginProtocol } from '../domain/plugin.ts'
import { describeCreddyPlugin, openCreddy } from './creddy/open-creddy.ts'
import type { Description } from './description.ts'
import { garbage } from './mayfly/answers.ts'
import { type StartParts, withProcess } from './mayfly/client.ts'
import { describePlugin } from './mayfly/describe.ts'
import { openPlugin } from './mayfly/open-plugin.ts'
import type { PluginOptions } from './process/isolation.ts'
import type { PinnedPlugin, Program } from './process/program.ts'
import { readSchema } from './schema.ts'
import { matcherOf, shownForm } from './scope-forms.ts'
import { hiderOf } from './text.ts'

/** A kind whose code runs in processes of its own. Known from what the store has of it, while none runs. */
export function kindOfPlugin(pinned: PinnedPlugin, options: PluginOptions): Kind {
  const { description } = pinned
  const { forms, help } = description.scopes
  const kind: Kind = {
    type: pinned.name,
    title: description.title,
    config: readSchema(configOf(pinned), 'configuration'),
    params: readSchema(description.params, 'options'),
    limits: description.limits,
    revocation: description.revocation,
    ...(description.recovers ? {} : { recovery: 'none' as const }),
    upstream: true,
    scopes: {
      valid: matcherOf(forms.map(({ form }) => form)),
      forms: forms.map(({ form, gives }) => ({ form: shownForm(form), gives })),
      help,
    },
    environment: description.environment,
    ...(description.offers.includes('complete')
      ? { complete: (config: Config) => complete(pinned, options, config) }
      : {}),
    open: (config, host) => OPEN[pinned.protocol](pinned, options, config as Config, host),
  }
  return kind
}

/**
 * The protocol creddy has no word for a field that reaches beyond the backend, and its plugins open their own connections: each of
 * their texts may name a host inside our network, or a name that leads there. So only its default is open to every administrator of
 * backends. Not part of the description that is stored, so that a plugin which was added before is bound, too.
 */
function configOf({ protocol, description: { config } }: PinnedPlugin): Description['config'] {
  if (protocol !== 'creddy.plugin.v1') return config
  const fields = Object.entries(
    (config['properties'] ?? {}) as Record<string, Readonly<Record<string, unknown>>>,
  )
  const guarded = fields.map(([name, field]) => {
    const mayNameHost = !(SECRET_MARK in field) && (field['type'] === 'string' || field['type'] === 'array')
    const { default: preset } = field
    const safe = typeof preset === 'string' ? [preset] : []
    return [name, mayNameHost ? { ...field, [GUARDED_MARK]: { safe } } : field]
  })
  return { ...config, properties: Object.fromEntries(guarded) }
}

const OPEN = { 'mayfly.plugin.v1': openPlugin, 'creddy.plugin.v1': openCreddy }

type Config = Readonly<Record<string, unknown>>

/** Takes only fields that were left out: what an administrator entered stays as it is. */
async function complete(pinned: PinnedPlugin, options: PluginOptions, config: Config): Promise<Config> {
  const { name, description } = pinned
  const texts = Object.values(config).filter((value) => typeof value === 'string')
  const { isolation, log } = options
  const parts = { isolation, log, name, hide: hiderOf(texts.filter(({ length }) => length >= 8)) }
  const { configJson } = await withProcess(pinned, parts, (call) =>
    call((client, how) => client.complete({ configJson: JSON.stringify(config) }, how)),
  )
  const filled = parseJson(configJson)
  if (filled === undefined) throw garbage(name, 'with a configuration that is not JSON')
  if (!isObject(filled)) throw garbage(name, 'with no configuration')
  const added = Object.entries(filled).filter(([field]) => config[field] === undefined)
  const whole = { ...Object.fromEntries(added), ...config }
  if (Value.Check(readSchema(description.config, 'configuration'), whole)) return whole
  throw garbage(name, 'with a configuration that does not match its own schema')
}

const DESCRIBE = { 'mayfly.plugin.v1': describePlugin, 'creddy.plugin.v1': describeCreddyPlugin }

/** Starts a process from this program, asks it what it is, and ends it. Throws `BackendError`. */
export function describeProgram(
  program: Program,
  protocol: PluginProtocol,
  options: Pick<StartParts, 'isolation' | 'log'>,
): Promise<Description> {
  return DESCRIBE[protocol](program, options)
}
