"""optuna: a study of a few trials."""

import optuna
from small_model import train

optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(trial):
    return train(seed=trial.suggest_int("seed", 0, 5), count=15)[-1]


study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
study.optimize(objective, n_trials=5)
print("result", round(study.best_value, 6), study.best_params, flush=True)
