import { type FormEvent, type ReactNode, useRef, useState } from 'react'
import { failureOf } from '../../api/failure.ts'
import { Button } from '../../ui/button.tsx'
import { Actions } from '../../ui/dialog.tsx'
import { CheckField, TextField } from '../../ui/fields.tsx'
import { FormFields } from './controls.tsx'
import { type Faults, type FormField, type FormValues, namedIn, readForm, showConfig } from './form.ts'
import { Preflight } from './preflight.tsx'
import { NO_RULES, type Rules, type RuleValues, readRules, ruleFaults } from './rule-values.ts'
import { RuleFields } from './rules.tsx'

export interface Filled {
  readonly name: string
  readonly config: Record<string, unknown>
  readonly rules: Rules
  /** Whether the configuration was touched; a secret that was entered is another one. */
  readonly isConfigChanged: boolean
  readonly isChecked: boolean
}

interface Props {
  readonly fields: readonly FormField[]
  /** Of a new one: the name that it gets unless another is entered. */
  readonly defaultName?: string
  /** Of one that exists. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly kept?: readonly string[]
  readonly rules?: RuleValues
  /** More to decide, under the fields. */
  readonly children?: ReactNode
  readonly action: string
  readonly onClose: () => void
  /** The form stays as it is until the server has taken it. */
  readonly onSubmit: (filled: Filled) => Promise<void>
  /** What has been entered so far, to show it as a command. */
  readonly preview: (filled: Filled) => ReactNode
}

/** The configuration and the rules of a backend. What was typed stays, whatever the server answers. */
export function BackendForm(props: Props) {
  const { fields, config = {}, kept = [], rules: ruled = NO_RULES } = props
  const [name, setName] = useState('')
  const [first] = useState(() => showConfig(fields, config))
  const [values, setValues] = useState<FormValues>(first)
  const [rules, setRules] = useState(ruled)
  const [isChecked, setChecked] = useState(true)
  const [faults, setFaults] = useState<Faults>({})
  const [state, setState] = useState<{ isSent: boolean; error?: unknown }>({ isSent: false })
  const form = useRef<HTMLFormElement>(null)
  const read = readForm(fields, values, { kept })
  const filled: Filled = {
    name: name.trim() || (props.defaultName ?? ''),
    config: read.config,
    rules: readRules(rules, ruled),
    isConfigChanged: JSON.stringify(values) !== JSON.stringify(first),
    isChecked,
  }
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const found = { ...read.faults, ...ruleFaults(rules) }
    setFaults(found)
    if (Object.keys(found).length > 0) return showFirst(form.current)
    setState({ isSent: true })
    try {
      await props.onSubmit(filled)
    } catch (error) {
      const [named] = namedIn(failureOf(error).message, fields)
      if (named !== undefined) setFaults({ [named]: 'The server does not take this; see below.' })
      setState({ isSent: false, error })
    }
  }
  const groups = {
    first: fields.filter(({ isFirst }) => isFirst),
    more: fields.filter(({ isFirst }) => !isFirst),
  }
  const part = { values, faults, kept, onChange: setValues }
  const isFaulty = (some: readonly FormField[]) =>
    some.some((one) =>
      Object.keys(faults).some((path) => path === one.name || path.startsWith(`${one.name}.`)),
    )
  return (
    <form ref={form} onSubmit={submit} className="grid gap-5" noValidate>
      {props.defaultName !== undefined && (
        <TextField
          label="Name (optional)"
          hint="Agents ask by this name, and it stays. Small letters, digits, dots and hyphens."
          placeholder={props.defaultName}
          value={name}
          onChange={({ target }) => setName(target.value)}
        />
      )}
      <FormFields {...part} fields={groups.first} />
      <More
        title="More of the configuration"
        names={groups.more.map((one) => one.name)}
        isOpen={isFaulty(groups.more)}
      >
        <FormFields {...part} fields={groups.more} />
      </More>
      <More title="Limits" names={Object.keys(NO_RULES).slice(1)} isOpen={faults['max_active'] !== undefined}>
        <RuleFields values={rules} faults={faults} onChange={setRules} />
      </More>
      <TextField
        label="description (optional)"
        placeholder="The database of the shop."
        maxLength={1_024}
        value={rules.description}
        onChange={({ target }) => setRules({ ...rules, description: target.value })}
      />
      <CheckField
        label="Try the upstream before anything is stored"
        checked={isChecked}
        onChange={({ target }) => setChecked(target.checked)}
      />
      {props.children}
      <Preflight isSent={state.isSent} isChecked={isChecked && filled.isConfigChanged} error={state.error} />
      <Actions>
        {props.preview(filled)}
        <Button onClick={props.onClose}>Cancel</Button>
        <Button type="submit" look="primary" disabled={state.isSent}>
          {state.isSent ? 'Sent, waiting for the answer…' : props.action}
        </Button>
      </Actions>
    </form>
  )
}

/** Puts the focus on the first field that is at fault, once it is drawn. */
function showFirst(form: HTMLFormElement | null): void {
  setTimeout(() => form?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
}

interface MoreProps {
  readonly title: string
  readonly names: readonly string[]
  /** A field in it needs the eyes of a person. */
  readonly isOpen: boolean
  readonly children: ReactNode
}

/** What most people leave as it is. It says what is in it. */
function More({ title, names, isOpen, children }: MoreProps) {
  const [isWanted, setWanted] = useState(false)
  if (names.length === 0) return null
  return (
    <details
      open={isOpen || isWanted}
      onToggle={({ currentTarget }) => setWanted(currentTarget.open)}
      className="rounded-sm border border-line"
    >
      <summary className="px-3 py-2 text-sm font-medium">
        {title} <span className="font-normal text-muted">{names.join(', ')}</span>
      </summary>
      <div className="border-t border-line px-3 py-4">{children}</div>
    </details>
  )
}
