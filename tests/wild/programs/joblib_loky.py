"""joblib: processes of loky that compute."""

from joblib import Parallel, delayed
from small_model import show, train

if __name__ == "__main__":
    for losses in Parallel(n_jobs=2)(delayed(train)(None, seed, 40) for seed in range(2)):
        show(losses)
