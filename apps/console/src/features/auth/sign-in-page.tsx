import { zodResolver } from '@hookform/resolvers/zod';
import { useRouter, useSearch } from '@tanstack/react-router';
import { apiSchemas } from '@weir/domain';
import { useForm } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { asApiError } from '../../api/api-error.js';
import { api, meQueryKey, queryClient } from '../../api/client.js';
import { Mark } from '../../app/mark.js';
import { LanguageSwitch, ThemeSwitch } from '../../app/shell.js';
import { Button } from '../../ui/button.js';
import { Field, Input } from '../../ui/field.js';

export function SignInPage() {
  const { t } = useTranslation();
  const router = useRouter();
  const { back } = useSearch({ from: '/sign-in' });
  const form = useForm({
    resolver: zodResolver(apiSchemas.signInBody),
    defaultValues: { email: '', password: '' },
  });
  const signIn = api.useMutation('post', '/api/v1/auth/sign-in', {
    onSuccess: (me) => {
      queryClient.clear();
      queryClient.setQueryData(meQueryKey, me);
      // A path of our own: a foreign address in `back` must lead nowhere.
      router.history.replace(back && !back.startsWith('//') ? back : '/');
    },
  });
  const fault = signIn.error ? asApiError(signIn.error) : null;
  const { errors } = form.formState;

  return (
    <main className="relative grid min-h-dvh place-items-center p-4">
      <div className="absolute top-3 right-3 flex gap-1">
        <LanguageSwitch />
        <ThemeSwitch />
      </div>
      <div className="w-full max-w-sm">
        <div className="mb-6 flex items-center gap-3">
          <Mark className="size-9" />
          <div>
            <h1 className="text-lg leading-6 font-semibold tracking-tight">{t('product')}</h1>
            <p className="text-xs text-ink-3">{t('signIn.tagline')}</p>
          </div>
        </div>
        <form
          noValidate
          aria-label={t('signIn.title')}
          onSubmit={form.handleSubmit((body) => signIn.mutate({ body }))}
          className="flex flex-col gap-3.5 rounded-xl border border-line bg-surface p-5 shadow-card"
        >
          <Field label={t('signIn.email')} error={errors.email && t('signIn.emailFault')}>
            {(props) => (
              <Input
                type="email"
                autoComplete="username"
                autoFocus
                {...props}
                {...form.register('email')}
              />
            )}
          </Field>
          <Field label={t('signIn.password')} error={errors.password && t('signIn.passwordFault')}>
            {(props) => (
              <Input
                type="password"
                autoComplete="current-password"
                {...props}
                {...form.register('password')}
              />
            )}
          </Field>
          {fault && (
            <p role="alert" className="rounded-md bg-bad-soft px-3 py-2 text-bad">
              {t(fault.code === 'unauthenticated' ? 'signIn.refused' : `error.${fault.code}`)}
            </p>
          )}
          <Button type="submit" variant="primary" busy={signIn.isPending} className="mt-1 h-9">
            {t('signIn.submit')}
          </Button>
        </form>
      </div>
    </main>
  );
}
