import type { Kind } from '../../../../src/client/wire.ts'
import { Copy } from '../../ui/copy.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { visible } from '../../ui/hostile.ts'
import { Hostile } from '../../ui/text.tsx'
import { KEPT } from './form.ts'

interface Props {
  readonly config: Readonly<Record<string, unknown>>
  readonly kind: Kind | undefined
}

/** What is configured, in the order of the kind. The server never says a secret. */
export function ShownConfig({ config, kind }: Props) {
  const properties = (kind?.config['properties'] ?? {}) as Readonly<Record<string, unknown>>
  const names = [...Object.keys(properties), ...Object.keys(config)]
  const shown = [...new Set(names)].filter((name) => config[name] !== undefined && config[name] !== '')
  if (shown.length === 0) return <p className="text-muted">It has none.</p>
  return (
    <Facts>
      {shown.map((name) => (
        <Fact key={name} name={visible(name)}>
          <Shown name={name} value={config[name]} />
        </Fact>
      ))}
    </Facts>
  )
}

/** Longer values are for other programs: keys and certificates, to copy. */
const LONG = 200

function Shown({ name, value }: { readonly name: string; readonly value: unknown }) {
  if (value === KEPT) return <span className="text-muted">secret, stored and not shown</span>
  if (value === true) return 'yes'
  if (value === false) return 'no'
  if (Array.isArray(value) && value.every((one) => typeof one === 'string'))
    return (
      <ul>
        {value.map((one) => (
          <li key={one}>
            <Hostile text={one} />
          </li>
        ))}
      </ul>
    )
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  return (
    <>
      <Hostile text={text} most={LONG} />
      {text.length > LONG && <Copy text={text} what={name} />}
    </>
  )
}
