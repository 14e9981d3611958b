import type { TokenKind } from '@weir/domain';
import { TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import type { PriceRow } from '../../api/types.js';
import { useFormat } from '../../format/use-format.js';
import { Field, Input } from '../../ui/field.js';
import { isFarOff, sampleCall, sampleCost } from './prepare-prices.js';
import { mainKinds, rareKinds, type PriceValues } from './price-form.js';

type InputProps = React.ComponentProps<'input'>;

/** Prices with the cost of a sample call while one types, and a word when the point may have slipped. */
export function PriceFields({
  values,
  before,
  register,
  faulty,
}: {
  values: PriceValues;
  before: PriceRow | null;
  register: (name: TokenKind) => InputProps;
  faulty: (name: TokenKind) => boolean;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const sample = sampleCost(values.input, values.output);
  const farOff = [...mainKinds, ...rareKinds].some((kind) =>
    isFarOff(before?.perMillionTokens[kind], values[kind]),
  );
  const field = (kind: TokenKind, placeholder: string) => (
    <Field
      key={kind}
      label={t(`tokenKind.${kind}`)}
      error={faulty(kind) ? t('models.priceFault') : undefined}
    >
      {(props) => (
        <Input
          inputMode="decimal"
          autoComplete="off"
          className="tabular text-right"
          placeholder={placeholder}
          {...props}
          {...register(kind)}
        />
      )}
    </Field>
  );
  return (
    <div className="flex flex-col gap-2">
      <div className="grid grid-cols-3 gap-3">
        {mainKinds.map((kind) => field(kind, kind === 'cachedInput' ? values.input : '2.50'))}
      </div>
      <p className="text-xs text-ink-3">
        {t('models.perMillion', { currency: format.currency, zone: format.zone })}
      </p>
      <details
        className="rounded-md border border-line px-3 py-2"
        open={rareKinds.some((kind) => values[kind] !== '' || faulty(kind))}
      >
        <summary className="cursor-pointer text-xs font-medium text-ink-2">
          {t('models.rareKinds')}
        </summary>
        <div className="mt-2 grid grid-cols-2 gap-3">
          {rareKinds.map((kind) => field(kind, ''))}
        </div>
        <p className="mt-2 text-xs text-ink-3">{t('models.rareKindsText')}</p>
      </details>
      {sample && (
        <p className="tabular rounded-md bg-sunken px-3 py-2 text-xs text-ink-2">
          {t('models.sample', {
            input: format.count(sampleCall.inputTokens.toString()),
            output: format.count(sampleCall.outputTokens.toString()),
            cost: format.exactMoney(sample),
          })}
        </p>
      )}
      {farOff && (
        <p className="flex gap-1.5 text-xs text-warn">
          <TriangleAlert aria-hidden className="mt-0.5 size-3.5 shrink-0" />
          {t('models.farOff')}
        </p>
      )}
    </div>
  );
}
